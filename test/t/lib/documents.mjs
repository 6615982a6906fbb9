// documents.mjs MODULE COUNT SEED: random JSON texts, each with what another RFC 8785 implementation (npm's canonicalize,
// MODULE) makes of it, plainly and after payload options were applied to the value here, step by step as documented.
//
// A line has five fields in base64: the text, its canonical form, options, the canonical form of the value they make, and
// whether every number of the text is written as the shortest decimal of its double, so that exact numbers agree too.
// Texts are I-JSON: no member twice, no lone surrogate, no noncharacter, no U+0000. Characters are of Unicode 15 or older,
// so that any recent node has the same NFC.
import { pathToFileURL } from 'node:url';

const [, , module, count, seed] = process.argv;
const { default: canonicalize } = await import(pathToFileURL(module));

// A generator of our own, so that a seed gives the same documents everywhere.
let state = BigInt(seed);
function random(limit) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 33n) % limit;
}
const pick = (list) => list[random(list.length)];
const times = (limit, make) => Array.from({ length: random(limit) }, make);

const RANGES = [[0x20, 0x7e], [0x20, 0x7e], [0x20, 0x7e], [1, 0x1f], [0x7f, 0x24f], [0x300, 0x36f], [0x370, 0x3ff], [0x590, 0x5f4],
    [0x900, 0x97f], [0x1100, 0x11ff], [0x1e00, 0x1eff], [0x1f00, 0x1fff], [0x2000, 0x2044], [0x3040, 0x30ff], [0xac00, 0xd7a3],
    [0xe000, 0xe010], [0xf900, 0xfaff], [0xfb1d, 0xfb4f], [0xfe20, 0xfe2f], [0xfff0, 0xfffd], [0x10000, 0x1000b],
    [0x1d15e, 0x1d1c0], [0x1f600, 0x1f64f], [0x2f800, 0x2fa1d], [0x10fff0, 0x10fffd]];
const SPACES = '\t\n\v\f\r \u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff\u180e';

function character() {
    const [first, last] = pick(RANGES);
    return String.fromCodePoint(first + random(last - first + 1));
}
const string = () => (random(6) ? '' : pick([...SPACES])) + times(random(20) ? 12 : 200, character).join('') + (random(6) ? '' : pick([...SPACES]));
const name = () => (random(3) ? pick(['a', 'b', 'aa', 'ab', 'id', 'ts', 'amount', 'Z', '']) : string());

function double() {
    const bytes = new DataView(new ArrayBuffer(8));
    for (;;) {
        for (let i = 0; i < 8; i++) bytes.setUint8(i, random(256));
        if (random(2)) bytes.setUint16(0, (0x3ff + random(80) - 40) * 16 + random(16)); // near 1
        if (random(8) === 0) bytes.setBigUint64(0, bytes.getBigUint64(0) & 0xfff0000000000000n); // a power of two
        const value = bytes.getFloat64(0);
        if (Number.isFinite(value)) return value;
    }
}

function numberText() {
    const value = pick([() => double(), () => random(1000), () => -random(100000) / 100, () => random(2 ** 31) * 2 ** 22 + random(2 ** 22)])();
    switch (random(8)) {
        case 0: return value.toExponential();
        case 1: return value.toPrecision(17).replace('e+', 'E');
        case 2: return value.toPrecision(21 + random(30));
        case 3: return Math.abs(value) < 1e21 && Math.abs(value) > 1e-6 ? value.toFixed(random(30)) : String(value);
        case 4: return String(9007199254740992n + BigInt(random(2 ** 31)) * BigInt(1 + random(1000)));
        case 5: return Object.is(value, -0) ? '-0.0' : String(value);
        default: return String(value);
    }
}

function stringText(value) {
    return '"' + [...value].map((c) => {
        const escape = { '"': '\\"', '\\': '\\\\', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t' }[c];
        if (escape !== undefined && random(4)) return escape;
        if (escape !== undefined || c < ' ' || random(10) === 0)
            return c.split('').map((u) => '\\u' + pick([(x) => x, (x) => x.toUpperCase()])(u.charCodeAt(0).toString(16).padStart(4, '0'))).join('');
        return c === '/' && random(4) === 0 ? '\\/' : c;
    }).join('') + '"';
}

const space = () => (random(4) ? '' : pick([' ', '\n', '\t', '\r\n  ']));

function text(depth) {
    const inner = [() => 'null', () => 'true', () => 'false', numberText, numberText, () => stringText(string())];
    const array = () => '[' + space() + times(6, () => space() + text(depth + 1) + space()).join(',') + ']';
    const object = () => {
        const seen = new Set();
        const members = times(random(30) ? 7 : 60, name).filter((n) => !seen.has(n) && seen.add(n));
        return '{' + space() + members.map((n) => space() + stringText(n) + space() + ':' + space() + text(depth + 1)).join(',') + space() + '}';
    };
    return pick(depth > 5 ? inner : depth === 0 ? [array, object, object] : [...inner, array, object])();
}

// exact tells whether exact numbers have the same text: a number is the shortest decimal of its double.
function exact(json) {
    let fine = true;
    const digits = (s) => {
        const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(s);
        const all = (whole + fraction).replace(/^0+/, '');
        const kept = all.replace(/0+$/, '');
        return kept === '' ? '0' : sign + kept + 'e' + (Number(exponent) - fraction.length + all.length - kept.length);
    };
    for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gs)) {
        if (token[0] !== '"') fine = fine && digits(token) === digits(String(Number(token)));
    }
    return fine;
}

// apply is the documentation of the options in JavaScript: ignore, then strip nulls, then each string, then order.
function apply(value, options) {
    if (Array.isArray(value)) return value.map((v) => apply(v, options));
    if (typeof value === 'string') {
        let out = value;
        if (options.trim_strings) out = out.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '');
        if (options.nfc_strings) out = out.normalize('NFC');
        return out;
    }
    if (value === null || typeof value !== 'object') return value;
    const out = Object.create(null);
    for (const [key, inner] of Object.entries(value)) {
        if (!(options.strip_nulls && inner === null)) out[key] = apply(inner, options);
    }
    return out;
}

// at finds random steps into a value: what a path of theirs would name.
function steps(value) {
    const out = [];
    let here = value;
    while (here !== null && typeof here === 'object' && (out.length === 0 || random(3))) {
        const keys = Object.keys(here);
        if (keys.length === 0) break;
        out.push(Array.isArray(here) ? null : pick(keys));
        here = here[Array.isArray(here) ? pick(keys) : out.at(-1)];
    }
    while (out.at(-1) === null) out.pop();
    return out;
}
const path = (list) => '$' + list.map((s) => (s === null ? '[*]' : '.' + (/^[a-z]+$/.test(s) && random(2) ? s : JSON.stringify(s)))).join('');

function remove(value, [step, ...more]) {
    if (value === null || typeof value !== 'object') return;
    if (step === null) {
        if (Array.isArray(value)) value.forEach((v) => remove(v, more));
    } else if (!Array.isArray(value) && Object.hasOwn(value, step)) {
        if (more.length === 0) delete value[step];
        else remove(value[step], more);
    }
}

const encode = (s) => Buffer.from(s, 'utf8').toString('base64');
for (let i = 0; i < Number(count); i++) {
    const json = space() + text(0) + space();
    const value = JSON.parse(json);
    const options = { trim_strings: random(2) === 0, nfc_strings: random(2) === 0, strip_nulls: random(2) === 0, ignore_paths: [], unordered_paths: [] };
    const changed = JSON.parse(json);
    for (const list of times(3, () => steps(value)).filter((l) => l.length > 0)) {
        options.ignore_paths.push(path(list));
        remove(changed, list);
    }
    let result = apply(changed, options);
    if (Array.isArray(result) && random(2)) {
        options.unordered_paths.push('$');
        result = result.map((v) => [canonicalize(v), v]).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, v]) => v);
    }
    console.log([json, canonicalize(value), JSON.stringify(options), canonicalize(result), String(exact(json))].map(encode).join('\t'));
}
