#!/bin/bash
# tests_scheduled: what looks like a test is run. The rings take their tests by wildcard, so this checks what a wildcard
# cannot: that inputs and expected outputs pair up, and that names are such that the wildcards see them.
set -eu
shopt -s nullglob
breaches=0
breach() { echo "$1" && breaches=1; }

# pair INPUTS SUFFIX OUTPUTS: NAME.SUFFIX goes with NAME.out; NAME_1.out and so on are alternatives to NAME.out.
pair() {
    local file name
    for file in "$1"/*."$2"; do
        name=$(basename "$file" ".$2")
        [[ $name == *--* ]] || [ -e "$3/$name.out" ] || breach "$file has no $3/$name.out"
    done
    for file in "$3"/*.out; do
        name=$(basename "$file" .out)
        [ -e "$1/$name.$2" ] || [ -e "$1/${name%_[0-9]}.$2" ] || breach "$file has no $1/$name.$2"
    done
}
pair sql sql expected
pair test/isolation/specs spec test/isolation/expected

for file in test/isolation/*.spec test/isolation/specs/*/* sql/*/*; do breach "$file is where no ring looks"; done
for file in test/t/*; do
    [[ $file =~ ^test/t/([0-9]{3}_[a-z0-9_]+\.pl|lib|README\.md)$ ]] || breach "$file is not named NNN_topic.pl"
done
for file in test/unit/*.cpp; do
    grep -Eq '^(TEST|TEST_F|TEST_P|TYPED_TEST)\(|int main\(' "$file" || breach "$file holds no test"
done
for file in test/lint/*.sh test/lint/*.py; do [ -x "$file" ] || breach "$file is not executable"; done
exit $breaches
