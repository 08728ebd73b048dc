/**
 * Rules for the documentation of public symbols. They read the model that API Extractor makes of a
 * package, and return complaints, one sentence each.
 */

/** Every symbol of a model, members included, with the symbols that contain it. */
export function* symbolsOf(model) {
  for (const entry of model.members ?? []) yield* inside(entry, []);
}

function* inside(symbol, around) {
  if (symbol.kind === 'EntryPoint' || symbol.kind === 'Package') {
    for (const each of symbol.members ?? []) yield* inside(each, around);
    return;
  }
  yield { symbol, around };
  for (const each of symbol.members ?? []) yield* inside(each, [...around, symbol]);
}

const nameOf = ({ symbol, around }) => [...around, symbol].map((each) => each.name ?? 'constructor').join('.');
const declarationOf = ({ excerptTokens = [] }) => excerptTokens.map(({ text }) => text).join('');
/** The comment as prose, without stars and line ends. */
const proseOf = ({ docComment = '' }) =>
  docComment
    .replaceAll(/^\s*\/\*\*|\*\/\s*$|^\s*\*/gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

function typeOf(symbol) {
  const range = symbol.propertyTypeTokenRange ?? symbol.returnTypeTokenRange;
  if (range === undefined) return '';
  return symbol.excerptTokens
    .slice(range.startIndex, range.endIndex)
    .map(({ text }) => text)
    .join('');
}

/** Names of types that hold settings. */
const settingsName = /(?:Options?|Settings|Extras|Policy)$/;
/** Names of times, and of sizes in bytes. */
const timeName = /(?:timeout|elapsed|pause|delay|interval|ttl|time)/i;
const bytesName = /(?:length|bytes|size)$/i;

/** A symbol with a single value needs no documentation, nor does a well-known symbol. */
function speaksForItself(symbol) {
  return (
    /^(?:"\w+"|'[\w-]+'|null|undefined|true)$/.test(typeOf(symbol)) ||
    /= "\w+";$/.test(declarationOf(symbol)) ||
    symbol.name === '[Symbol.asyncIterator]'
  );
}

function undocumented({ symbol }) {
  return proseOf(symbol) === '' && !speaksForItself(symbol) ? ['has no documentation'] : [];
}

const saysDefault = /\bdefault\b|\bunless given\b/i;

/** An optional setting documents its default. */
function withoutDefault({ symbol, around }) {
  const isSetting = symbol.isOptional === true && symbol.kind === 'PropertySignature' && settingsName.test(around.at(-1)?.name ?? '');
  return isSetting && !saysDefault.test(proseOf(symbol)) ? ['is optional, and does not say its default'] : [];
}

/** A number with a unit has it in its name or in its documentation. */
function withoutUnit({ symbol }) {
  if (!/^(?:PropertySignature|Property)$/.test(symbol.kind) || !/\b(?:number|Millis)\b/.test(typeOf(symbol))) return [];
  const prose = proseOf(symbol);
  const name = symbol.name.replace(/(?:Ms|Millis)(?:Max)?$/, '');
  if (timeName.test(name) && name === symbol.name && !/\b(?:ms|milliseconds?|seconds?)\b/i.test(prose)) return ['is a time without a unit'];
  return bytesName.test(symbol.name) && !/bytes|how many/i.test(`${symbol.name} ${prose}`) ? ['is a size without a unit'] : [];
}

const failures = /\b(?:[Ff]ails? (?:as|with|only)|[Rr]ejects?|[Tt]hrows?|@throws)\b/;

/** An asynchronous operation can fail; its documentation says with what, or that it never does. */
function withoutErrors({ symbol }) {
  const isAwaited = /^(?:Promise|AsyncGenerator)\b/.test(typeOf(symbol));
  const isCalled = ['Method', 'Function'].includes(symbol.kind);
  return isCalled && isAwaited && !failures.test(proseOf(symbol)) ? ['does not say with what it fails'] : [];
}

const source = /ZooKeeper|ZOOKEEPER-\d+|Curator|RFC \d+|JSR|Node(?:\.js)?'s/;

/** The methods of a class that implements a specification name that specification. */
function withoutSource({ symbol, around }, sourced) {
  const isOperation = symbol.kind === 'Method' && symbol.isStatic !== true && sourced.includes(around.at(-1)?.name);
  if (!isOperation || (symbol.overloadIndex ?? 1) > 1 || symbol.name.startsWith('[')) return [];
  return source.test(proseOf(symbol)) ? [] : ['does not say where it comes from (ZooKeeper, an issue, Curator, an RFC)'];
}

/** Names of 64-bit values: zxids (the version of a configuration is one) and session ids. */
const wide = /zxid|session|ephemeralOwner|fromConfig|fencingToken|^Reread\.since$|bigint64$/i;

/** A bigint costs its reader a conversion, so it is used only for 64-bit values. */
function needlesslyWide(each) {
  if ((each.symbol.members ?? []).length > 0 || !/\bbigint\b/.test(declarationOf(each.symbol))) return [];
  return wide.test(nameOf(each)) ? [] : ['is a bigint, and has no 64 bits'];
}

/** `sourced` names the classes whose methods must name their specification. */
export function docComplaints(model, sourced = /** @type {string[]} */ ([])) {
  const rules = [undocumented, withoutDefault, withoutUnit, withoutErrors, needlesslyWide, (each) => withoutSource(each, sourced)];
  return [...symbolsOf(model)].flatMap((each) => rules.flatMap((rule) => rule(each)).map((complaint) => `${nameOf(each)} ${complaint}`));
}
