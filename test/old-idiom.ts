/**
 * Words and phrases that this repository does not use, each with what to write instead.
 *
 * They come from an idiom that no other project of this field writes: sentences without a subject,
 * and common verbs in the place of the field's terms. CONTRIBUTING.md asks for plain technical
 * English; this list is the part of that rule that a program can check. Each pattern must be
 * precise enough to match nothing else: a word with an ordinary meaning is listed with its context.
 *
 * Comments, text literals and documentation are checked. Names in code are not, nor is code that
 * prose quotes in backticks.
 */
interface Idiom {
  /** A space matches a line break as well, with the beginning of the next line of a comment. */
  readonly phrase: string;
  readonly instead: string;
}

const idioms: readonly Idiom[] = [
  {
    phrase: 'no one(?! \\w+s)|nobody(?= [a-z])|(?<=[a-z][,:;]? )nobody',
    instead: 'the subject: "no client", "no server", "no process", or "none"',
  },
  { phrase: 'somebody(?= [a-z])|(?<=[a-z] )somebody', instead: 'the subject: "a client", "another server"' },
  {
    phrase: '(?:who|whom|what)soever|(?:whoever|whomever|anybody|everybody)(?= [a-z])',
    instead: 'the subject: "the client that", "every client"',
  },
  { phrase: 'in vain|(?:comes?|came|coming) to (?:nothing|naught)|to no avail', instead: '"without success", "fails"' },
  { phrase: 'all the same(?! \\w)', instead: '"anyway", "nevertheless", "still"' },
  {
    phrase: 'told|tell(?:s|ing)? (?:an?|the|it|its|them|each|every|all|another|others)',
    instead: '"notified", "sent", "reported", "instructed"',
  },
  { phrase: 'tell(?:s|ing)? (?:[\\w-]+ ){0,4}apart|(?:cannot|can) tell', instead: '"distinguish"' },
  { phrase: 'hears?|heard|hearing', instead: '"receives", "received", "learns of"' },
  { phrase: 'deaf|mute', instead: '"receives nothing", "sends nothing"' },
  { phrase: '(?:go|goes|gone|going|went) by', instead: '"uses", "follows", "passes"' },
  { phrase: '(?:be|is|are|being) let go|lets? go', instead: '"release"' },
  { phrase: '(?:takes?|took|taken|taking) up(?! to)', instead: '"resume", "continue", "occupy"' },
  { phrase: '(?:to|could|can|may|cannot|not) be had', instead: '"is available"' },
  { phrase: 'judges?|judged|judging|judgements?', instead: '"check", "validate", "evaluate", "decide"' },
  { phrase: '(?<![\'"])verdicts?(?![\'":])', instead: '"result", "decision", "outcome"' },
  { phrase: 'condemn(?:s|ed)?|shun(?:s|ned|ning)?|forgiv(?:es?|en)', instead: 'the operation: "expire", "back off", "clear"' },
  { phrase: 'in (?:its|their|his) turn', instead: '"then", "also"' },
  { phrase: '(?:just )?as little(?! as)', instead: '"neither"' },
  { phrase: '(?:gives?|gave|given|giving)(?: \\w+){0,2} back', instead: '"release", "return"' },
  { phrase: 'for ever', instead: '"forever"' },
  { phrase: 'for want of|as much again|beneath', instead: '"without", "twice as much", "below"' },
  { phrase: 'on behalf', instead: '"for"' },
  { phrase: 'a way out', instead: '"a remedy"' },
  { phrase: '(?<!\\/)farewells?|good-?byes?', instead: '"close", "final reply"' },
  { phrase: 'bears?|bore|borne', instead: '"has", "carries"' },
  { phrase: 'what (?:has|have|had) (?:come|arrived|happened)', instead: 'the subject: "the bytes that have arrived"' },
  { phrase: "(?:not|nothing|never|no \\w+)(?: [\\w`']+){1,8} any more", instead: '"no longer"' },
  { phrase: '(?:the|whose) time is over', instead: '"timed out", "expired"' },
  { phrase: '(?:has|have|had) (?:just )?come(?! from)', instead: '"has arrived", "has joined", "is over"' },
  {
    phrase:
      '(?<!there )(?:is|are|was|were) no (?!longer|more|less|fewer|better|worse|later|earlier|larger|smaller|faster|slower|older|newer|higher|lower|other)\\w+',
    instead: '"is not a"',
  },
  { phrase: '(?<!if )there (?:is|are|was|were) no \\w+(?: \\w+)? (?:that|which|who|whom)', instead: '"no X does"' },
  {
    phrase:
      '(?<!(?:lag|lags|lagged|lagging|fall|falls|fell|fallen|falling|far|is|are|was|were|waits?|waiting|queued?|stuck|hides?|hidden) )(?<!\\b(?:leaves?|leaving|left)(?: [\\w-]+){0,6} )(?<=\\w )behind(?! (?:\\w+ ){0,3}(?:proxy|proxies|links?|cut|firewall|NAT|tunnel|balancer|interface|component)\\b)',
    instead: '"after"',
  },
];

const scope = /^(?:(?:packages\/[^/]+\/(?:src|test)|test|interop|bench|scripts|verification|examples|docs)\/|[^/]*\.md$|.*\/README\.md$)/;
/** Generated and recorded files, patches of code, and this list with its test. */
const exempt =
  /(?:^|\/)fixtures\/|^bench\/results\/|^docs\/internals\/mutants\.md$|^verification\/simulator\/src\/mutants\/|^test\/(?:old-idiom|tidy\.test)\.ts$/;
const code = /\.(?:ts|js|mjs|java|c|h)$/;

/** Replaces everything but line breaks, so that offsets stay and no phrase spans the gap. */
const blank = (text: string): string => text.replaceAll(/[^\n]/g, '\0');

/**
 * A copy of a source in which only comments and text literals are left, at their places. A `/` is
 * the beginning of a regular expression if no value precedes it.
 */
function textsOf(source: string): string {
  let texts = '';
  const keep = (to: number): void => void (texts += source.slice(texts.length, to));
  const drop = (to: number): void => void (texts += blank(source.slice(texts.length, to)));
  const token = /\/\*[\s\S]*?\*\/|\/\/.*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[`{}/]/g;
  const expression = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
  /** For each open brace: whether it is that of a `${` in a template. */
  const braces: boolean[] = [];
  const template = (): void => {
    const end = /`|\$\{/g;
    end.lastIndex = token.lastIndex;
    for (let match = end.exec(source); match !== null; match = end.exec(source)) {
      if (source[match.index - 1] === '\\') continue;
      keep(match.index);
      token.lastIndex = end.lastIndex;
      if (match[0] !== '`') braces.push(true);
      return;
    }
  };
  for (let match = token.exec(source); match !== null; match = token.exec(source)) {
    const [text] = match;
    if (text === '`') {
      drop(token.lastIndex);
      template();
    } else if (text === '{') braces.push(false);
    else if (text === '}') {
      if (braces.pop() === true) {
        drop(token.lastIndex);
        template();
      }
    } else if (text === '/') {
      const before = source.slice(Math.max(0, match.index - 20), match.index).trimEnd();
      if (!/[\w)\]}'"`]$/.test(before) || /\breturn$/.test(before)) {
        expression.lastIndex = match.index;
        if (expression.test(source)) token.lastIndex = expression.lastIndex;
      }
    } else {
      drop(match.index);
      keep(token.lastIndex);
    }
  }
  drop(source.length);
  return texts;
}

function textsOfPython(source: string): string {
  let texts = '';
  for (const { 0: text, index } of source.matchAll(/"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#.*/g)) {
    texts += blank(source.slice(texts.length, index)) + text;
  }
  return texts;
}

/** The text of a file without code; each character stays at its offset. */
function proseOf(path: string, text: string): string {
  if (path.endsWith('.md')) return text.replaceAll(/^ *```[\s\S]*?^ *```|`[^`\n]*`/gm, blank);
  if (path.endsWith('.txt')) return text.replaceAll(/^[^#\n].*/gm, blank).replaceAll(/^#/gm, ' ');
  if (path.endsWith('.py')) return textsOfPython(text);
  if (!code.test(path)) return text;
  return textsOf(text)
    .replaceAll(/(?<=\n\s*)(?:\*|\/\/)(?= )/g, (prefix) => ' '.repeat(prefix.length))
    .replaceAll(/`[^`\n]*`/g, blank);
}

const patterns = idioms.map(({ phrase, instead }) => ({
  pattern: new RegExp(String.raw`(?<![\w-])(?:${phrase.replaceAll(' ', String.raw`\s+`)})(?![\w-])`, 'gi'),
  instead,
}));

/** Uses of the old idiom, with line, words and advice. */
export function oldIdiom({ path, text }: { readonly path: string; readonly text: string }): string[] {
  if (!scope.test(path) || exempt.test(path) || !/\.(?:ts|js|mjs|java|c|h|py|md|txt)$/.test(path)) return [];
  const prose = proseOf(path, text);
  return patterns.flatMap(({ pattern, instead }) =>
    [...prose.matchAll(pattern)].map(({ 0: words, index }) => {
      const line = prose.slice(0, index).split('\n').length;
      return `${path}:${line}: "${words.replaceAll(/\s+/g, ' ')}": write ${instead}`;
    }),
  );
}
