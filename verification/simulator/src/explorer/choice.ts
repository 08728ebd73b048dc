/**
 * What can happen next in a small world, as a number for the search and as a word for people. A run
 * is a list of such words, and the same list always leads to the same state.
 *
 *     notify1>2      the pending notification from server 1 to server 2 arrives
 *     packet2#0      the next packet arrives over channel 0 of server 2, or the news that the stream
 *                    is closed
 *     break2#0       the packets in transit over the channel are lost, and the stream is closed
 *     dial3          the connection attempt of server 3 succeeds or fails
 *     log1, file1, config1   the oldest request to the log, for an epoch file or for the files of the
 *                    configuration is durable on the disk of server 1
 *     wake2          time passes for server 2 until its next deadline
 *     sleep2         more time passes for server 2 than any server would wait
 *     write1         a client creates a session at server 1, which is a txn
 *     connect2       the persistent client connects to server 2, with its session
 *     request2.1     it sends a request to server 2: 0 writes, 1 reads after a sync, 2 reads
 *     reconfig3.1    a client asks server 3 for the configuration 1 of those that the ensemble changes to
 *     transfer3>2    an operator asks server 3, which leads, to give the lead to server 2
 *     crash1.2.0     server 1 ends; of the unanswered requests to its disk, two to the log and none
 *                    for an epoch file take effect
 *     crash1.0.0.1   the same, and one of the files of its configuration was replaced
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
  'config',
  'reconfig',
  'transfer',
] as const;

export type ChoiceKind = (typeof kinds)[number];

/**
 * A number below 2^26: six bits for the kind, and five for each of four operands. The first is a
 * server, or a mask of servers.
 */
export type Choice = number;

export interface DecodedChoice {
  readonly kind: ChoiceKind;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: number;
}

const operandBits = 5;
const operandEnd = 1 << operandBits;
const operandMask = operandEnd - 1;

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
  reconfig: '.',
  transfer: '>',
};

export function encodeChoice(kind: ChoiceKind, a: number, b = 0, c = 0, d = 0): Choice {
  if (Math.max(a, b, c, d) >= operandEnd) throw new Error(`an operand of ${kind} ${a} ${b} ${c} ${d} is too large`);
  return [a, b, c, d].reduce((code, operand) => (code << operandBits) | operand, kinds.indexOf(kind));
}

export function decodeChoice(code: Choice): DecodedChoice {
  const operand = (at: number): number => (code >> (at * operandBits)) & operandMask;
  return { kind: kinds[code >> (4 * operandBits)]!, a: operand(3), b: operand(2), c: operand(1), d: operand(0) };
}

export function choiceText(code: Choice): string {
  const { kind, a, b, c, d } = decodeChoice(code);
  const joint = separators[kind];
  if (joint === undefined) return `${kind}${a}`;
  return kind === 'crash' ? `${kind}${a}.${b}.${c}${d === 0 ? '' : `.${d}`}` : `${kind}${a}${joint}${b}`;
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
      const found = /^([a-z]+)(\d+)(?:[>#.-](\d+))?(?:\.(\d+))?(?:\.(\d+))?$/.exec(word);
      const kind = kinds.find((each) => each === found?.[1]);
      if (found === null || kind === undefined) throw new Error(`${word} is not a choice; an example is packet2#0`);
      const [a = 0, b = 0, c = 0, d = 0] = found.slice(2).map((operand) => Number(operand ?? 0));
      return encodeChoice(kind, a, b, c, d);
    });
}
