/**
 * What the documentation of a public symbol has to say. The rules read the model that API Extractor makes of a package; each gives
 * complaints, one sentence each.
 */

/** Every symbol of a model, members included, with the chain of those around it. */
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

/** What holds settings by the last word of its name. */
const settingsName = /(?:Options?|Settings|Extras|Policy)$/;
/** What counts time or bytes by its name. */
const timeName = /(?:timeout|elapsed|pause|delay|interval|ttl|time)/i;
const bytesName = /(?:length|bytes|size)$/i;

/** A tag has one value, which says all there is to say; and what a well-known symbol is for is known. */
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

/** Whoever leaves a setting out learns here what happens then. */
function withoutDefault({ symbol, around }) {
  const isSetting = symbol.isOptional === true && symbol.kind === 'PropertySignature' && settingsName.test(around.at(-1)?.name ?? '');
  return isSetting && !saysDefault.test(proseOf(symbol)) ? ['is optional, and does not say its default'] : [];
}

/** A number of something is in ms or in bytes by its name or by its documentation. */
function withoutUnit({ symbol }) {
  if (!/^(?:PropertySignature|Property)$/.test(symbol.kind) || !/\b(?:number|Millis)\b/.test(typeOf(symbol))) return [];
  const prose = proseOf(symbol);
  const name = symbol.name.replace(/(?:Ms|Millis)(?:Max)?$/, '');
  if (timeName.test(name) && name === symbol.name && !/\b(?:ms|milliseconds?|seconds?)\b/i.test(prose)) return ['is a time without a unit'];
  return bytesName.test(symbol.name) && !/bytes|how many/i.test(`${symbol.name} ${prose}`) ? ['is a size without a unit'] : [];
}

const failures = /\b(?:[Ff]ails? (?:as|with|only)|[Rr]ejects?|[Tt]hrows?|@throws)\b/;

/** What is awaited or looped over can fail; its documentation says with what, or that it never does. */
function withoutErrors({ symbol }) {
  const isAwaited = /^(?:Promise|AsyncGenerator)\b/.test(typeOf(symbol));
  const isCalled = ['Method', 'Function'].includes(symbol.kind);
  return isCalled && isAwaited && !failures.test(proseOf(symbol)) ? ['does not say with what it fails'] : [];
}

const source = /ZooKeeper|ZOOKEEPER-\d+|Curator|RFC \d+|JSR|Node(?:\.js)?'s/;

/** What the package does in the field's own terms says where these are defined. */
function withoutSource({ symbol, around }, sourced) {
  const isOperation = symbol.kind === 'Method' && symbol.isStatic !== true && sourced.includes(around.at(-1)?.name);
  if (!isOperation || (symbol.overloadIndex ?? 1) > 1 || symbol.name.startsWith('[')) return [];
  return source.test(proseOf(symbol)) ? [] : ['does not say where it comes from (ZooKeeper, an issue, Curator, an RFC)'];
}

/** What has 64 bits, by its name or by what is around it: zxids (the version of a configuration is one) and session ids. */
const wide = /zxid|session|ephemeralOwner|fromConfig|fencingToken|^Reread\.since$|bigint64$/i;

/** A bigint costs its reader a conversion, so it stands only where a number could not hold all there is. */
function needlesslyWide(each) {
  if ((each.symbol.members ?? []).length > 0 || !/\bbigint\b/.test(declarationOf(each.symbol))) return [];
  return wide.test(nameOf(each)) ? [] : ['is a bigint, and has no 64 bits'];
}

/** `sourced` names the classes whose methods name their source. */
export function docComplaints(model, sourced = /** @type {string[]} */ ([])) {
  const rules = [undocumented, withoutDefault, withoutUnit, withoutErrors, needlesslyWide, (each) => withoutSource(each, sourced)];
  return [...symbolsOf(model)].flatMap((each) => rules.flatMap((rule) => rule(each)).map((complaint) => `${nameOf(each)} ${complaint}`));
}
