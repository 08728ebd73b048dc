/**
 * What can happen next in a small world, as a number for the search and as a word for people. A run
 * is a list of such words, and the same list always leads to the same state.
 *
 *     notify1>2      the pending notification from server 1 to server 2 arrives
 *     packet2#0      the next packet arrives over channel 0 of server 2, or the news that the stream
 *                    is closed
 *     break2#0       the packets in transit over the channel are lost, and the stream is closed
 *     dial3          the connection attempt of server 3 succeeds or fails
 *     log1, file1    the oldest request to the log, or for an epoch file, is durable on the disk of
 *                    server 1
 *     wake2          time passes for server 2 until its next deadline
 *     sleep2         more time passes for server 2 than any server would wait
 *     write1         a client creates a session at server 1, which is a txn
 *     connect2       the persistent client connects to server 2, with its session
 *     request2.1     it sends a request to server 2: 0 writes, 1 reads after a sync, 2 reads
 *     crash1.2.0     server 1 ends; of the unanswered requests to its disk, two to the log and none
 *                    for an epoch file take effect
 *     start1         it restarts
 *     cut1-2, heal1-2   nothing passes between two servers; the link works again
 *     refuse1-2      the same, but connection attempts are refused, and connections break
 *     refusal1>2     server 1 learns that its connection with 2 has closed, and that a new one is
 *                    refused
 *     elect6         the servers of the mask (here 2 and 3) exchange notifications until none of them
 *                    looks for a leader
 *     finalize1>2    server 1 follows server 2, or leads if they are the same, whatever others say
 */
const kinds = [
  'notify',
  'packet',
  'break',
  'dial',
  'log',
  'file',
  'wake',
  'sleep',
  'write',
  'crash',
  'start',
  'cut',
  'heal',
  'elect',
  'refuse',
  'refusal',
  'finalize',
  'connect',
  'request',
] as const;

export type ChoiceKind = (typeof kinds)[number];

/**
 * A number below 2^16: five bits for the kind, three for the first operand (a server, or a mask of
 * servers), and four for each of two others.
 */
export type Choice = number;

export interface DecodedChoice {
  readonly kind: ChoiceKind;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const firstOperandEnd = 8;
const operandEnd = 16;

const separators: Readonly<Partial<Record<ChoiceKind, string>>> = {
  notify: '>',
  packet: '#',
  break: '#',
  cut: '-',
  heal: '-',
  crash: '.',
  refuse: '-',
  refusal: '>',
  finalize: '>',
  request: '.',
};

export function encodeChoice(kind: ChoiceKind, a: number, b = 0, c = 0): Choice {
  if (a >= firstOperandEnd || b >= operandEnd || c >= operandEnd) throw new Error(`an operand of ${kind} ${a} ${b} ${c} is too large`);
  return (kinds.indexOf(kind) << 11) | (a << 8) | (b << 4) | c;
}

export function decodeChoice(code: Choice): DecodedChoice {
  return { kind: kinds[code >> 11]!, a: (code >> 8) & 7, b: (code >> 4) & 15, c: code & 15 };
}

export function choiceText(code: Choice): string {
  const { kind, a, b, c } = decodeChoice(code);
  const joint = separators[kind];
  if (joint === undefined) return `${kind}${a}`;
  return kind === 'crash' ? `${kind}${a}.${b}.${c}` : `${kind}${a}${joint}${b}`;
}

export function runText(run: readonly Choice[]): string {
  return run.map(choiceText).join(',');
}

/** Throws an `Error` that names the first invalid word. */
export function parseRun(text: string): Choice[] {
  return text
    .split(',')
    .filter((word) => word !== '')
    .map((word) => {
      const found = /^([a-z]+)(\d+)(?:[>#.-](\d+))?(?:\.(\d+))?$/.exec(word);
      const kind = kinds.find((each) => each === found?.[1]);
      if (found === null || kind === undefined) throw new Error(`${word} is not a choice; an example is packet2#0`);
      return encodeChoice(kind, Number(found[2]), Number(found[3] ?? 0), Number(found[4] ?? 0));
    });
}
