# A user who may create objects in the schema prepares some of ours, or better matching functions and operators, before a
# superuser creates the extension: CREATE EXTENSION fails or ignores them, and never adopts one. Covers G01, G03.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('precreated');
my $offset = log_size($node);

# What there is to prepare, from an installation. Only a superuser makes functions with arguments of type internal.
my @objects = split /\n/, $node->safe_psql('postgres', q(
	SELECT 'CREATE FUNCTION public.' || proname || '(' || oidvectortypes(p.proargtypes) || ') RETURNS '
	       || CASE WHEN pg_get_function_result(p.oid) ~ 'idem' THEN 'text' WHEN prorettype = 'trigger'::regtype THEN 'trigger' ELSE 'text' END
	       || ' LANGUAGE ' || CASE WHEN prorettype = 'trigger'::regtype THEN 'plpgsql' ELSE 'sql' END
	       || ' AS ' || CASE WHEN prorettype = 'trigger'::regtype THEN quote_literal('BEGIN RETURN NEW; END') ELSE quote_literal('SELECT ''evil''::text') END
	  FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idempotency')
	 WHERE oidvectortypes(p.proargtypes) !~ 'idem_result|internal'
	UNION ALL
	SELECT CASE relkind WHEN 'r' THEN 'CREATE TABLE public.' || relname || ' (operation_id uuid)'
	       WHEN 'v' THEN 'CREATE VIEW public.' || relname || ' AS SELECT 1 AS one' ELSE 'CREATE TYPE public.' || relname || ' AS (one int)' END
	  FROM pg_class AS c JOIN pg_depend AS d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idempotency')
	UNION ALL
	SELECT 'CREATE TYPE public.' || typname || ' AS (one int)'
	  FROM pg_type AS t JOIN pg_class AS c ON c.oid = t.typrelid JOIN pg_depend AS d ON d.objid = t.oid AND d.classid = 'pg_type'::regclass AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idempotency')
	 WHERE relkind = 'c'));
cmp_ok(scalar @objects, '>', 25, 'there are objects to prepare: ' . @objects);
$node->safe_psql('postgres', 'DROP EXTENSION idempotency; CREATE ROLE evil LOGIN; GRANT CREATE ON SCHEMA public TO evil');

my $super = session($node);
my $evil = session($node, undef, connstr => $node->connstr('postgres') . ' user=evil');
my (@accepted, @adopted);
for my $object (@objects)
{
	$evil->ask($object);
	push @accepted, $object if $super->sqlstate('CREATE EXTENSION idempotency') eq '';
	push @adopted, $object if $super->ask(q(SELECT count(*) FROM pg_depend WHERE deptype = 'e' AND refobjid IN (SELECT oid FROM pg_extension WHERE extname = 'idempotency')
		AND objid IN (SELECT oid FROM pg_proc WHERE proowner = 'evil'::regrole UNION SELECT oid FROM pg_class WHERE relowner = 'evil'::regrole))) ne '0';
	$super->ask('SET client_min_messages = error; DROP EXTENSION IF EXISTS idempotency');
	$super->ask('DROP OWNED BY evil; GRANT CREATE ON SCHEMA public TO evil');
}
is(scalar @accepted, 0, 'CREATE EXTENSION fails on each of them') or diag join "\n", @accepted;
is(scalar @adopted, 0, 'none is adopted') or diag join "\n", @adopted;

# A namesake with other arguments makes our script's names ambiguous.
$evil->ask(q(CREATE FUNCTION public.idem_claim(int) RETURNS int LANGUAGE sql AS 'SELECT 1'));
isnt($super->sqlstate('CREATE EXTENSION idempotency'), '', 'an overloaded namesake is no way in either');
$super->ask('DROP EXTENSION IF EXISTS idempotency; DROP OWNED BY evil; GRANT CREATE ON SCHEMA public TO evil');

# Functions and operators that match what the script calls better than the server's own polymorphic ones.
$evil->ask(q(
	CREATE FUNCTION public.caught() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught'; END $$;
	CREATE FUNCTION public.array_position(text[], text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); RETURN 1; END $$;
	CREATE FUNCTION public.array_position(name[], name) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); RETURN 1; END $$;
	CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); END $$;
	CREATE FUNCTION public.format(text, name, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); RETURN ''; END $$;
	CREATE FUNCTION public.pg_extension_config_dump(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); END $$;
	CREATE FUNCTION public.equal(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); RETURN true; END $$;
	CREATE FUNCTION public.equal(text, name) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); RETURN true; END $$;
	CREATE FUNCTION public.equal(name, varchar) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.caught(); RETURN true; END $$;
	CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = public.equal);
	CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = name, FUNCTION = public.equal);
	CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = varchar, FUNCTION = public.equal);
));
is($super->sqlstate('CREATE EXTENSION idempotency'), '', 'what the script does not create is no obstacle');
is($super->ask(q(
	SELECT pg_describe_object(d.classid, d.objid, 0) || ' calls ' || pg_describe_object(d.refclassid, d.refobjid, 0)
	  FROM pg_depend AS d
	 WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	   AND (d.refobjid IN (SELECT oid FROM pg_proc WHERE proowner = 'evil'::regrole) OR d.refobjid IN (SELECT oid FROM pg_operator WHERE oprowner = 'evil'::regrole))
	   AND d.objid NOT IN (SELECT oid FROM pg_operator))), '', 'nothing of the extension is bound to it');
my $errors = '';
for my $use ('SELECT count(*) > 0 FROM idem_help', 'SELECT count(*) > 0 FROM idem_policy_options', 'SELECT count(*) = 0 FROM idem_unfinished',
	q(SELECT count(*) > 0 FROM idem_set_policy('o', 'order')), q(SELECT count(*) > 0 FROM idem_admin_grant('evil', 'client')),
	q(SELECT c.outcome = 'claimed' FROM idem_claim('t', 'o', 'key-0123456789-0123', '1') AS c, idem_release(c.operation_id, c.token)))
{
	my ($out, $err) = $super->try($use);
	$errors .= "$use: $out $err\n" if $out ne 't';
}
is($errors, '', 'nor called by it');
log_is_clean($node, $offset, 'prepared objects');
$_->quit for $super, $evil;
$node->stop;
done_testing();
