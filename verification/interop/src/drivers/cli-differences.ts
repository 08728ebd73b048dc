/**
 * Intended differences of our command line from zkCli. ../../differences.md explains them at
 * length, and a test compares the two lists. A rule normalizes both texts; a remaining difference
 * then fails the run, and so does an unused rule.
 */

export interface CliDifference {
  readonly id: string;
  /** Whether the rule applies to this line. */
  readonly appliesTo: (line: string) => boolean;
  readonly ours?: (text: string) => string;
  readonly theirs?: (text: string) => string;
}

const oneShot = (line: string): boolean => line.endsWith('(one-shot)');
const zxids = (text: string): string => text.replaceAll(/^([cmp]Zxid = ).*$/gm, '$1ZXID');

export const cliDifferences: readonly CliDifference[] = [
  {
    id: 'cli-no-java-classes',
    appliesTo: () => true,
    theirs: (text) => text.replaceAll(/org\.apache\.commons\.cli\.\w+Exception: /g, ''),
  },
  {
    id: 'cli-quiet-connection',
    appliesTo: oneShot,
    theirs: (text) =>
      text.replace(/^Connecting to .*\n/, '').replaceAll(/\nWATCHER::\n\nWatchedEvent state:\w+ type:None path:null zxid: -1\n/g, ''),
  },
  { id: 'cli-ends-its-session', appliesTo: oneShot, ours: zxids, theirs: zxids },
  {
    id: 'cli-own-version',
    appliesTo: (line) => line === 'version',
    ours: (text) => text.replace(/^tskeeper CLI version: \d+\.\d+\.\d+$/m, 'VERSION'),
    theirs: (text) => text.replace(/^ZooKeeper CLI version: .*$/m, 'VERSION'),
  },
  {
    id: 'cli-nearest-command',
    appliesTo: (line) => line === 'nonsense',
    ours: (text) => text.replace(/^"help" lists the commands\.\n/m, ''),
    theirs: (text) => text.replace(/^ZooKeeper -server host:port -client-configuration properties-file cmd args\n(?:\t.*\n)*/m, ''),
  },
  {
    id: 'cli-one-complaint',
    appliesTo: (line) => line.startsWith('create '),
    theirs: (text) => text.replace(/^KeeperErrorCode = InvalidACL for .*\n/m, ''),
  },
  {
    id: 'cli-acl-of-which-znode',
    appliesTo: (line) => line === 'setAcl /joined nonsense',
    theirs: (text) => text.replace('Acl is not valid : null', 'Acl is not valid : /joined'),
  },
  {
    id: 'cli-help-is-no-mistake',
    appliesTo: (line) => line === 'ls -?',
    theirs: (text) => text.replace(/^ls \[-s\].*\n/m, ''),
  },
  {
    id: 'cli-quota-of-a-path',
    appliesTo: (line) => line === 'listquota relative' || line === 'delquota relative',
    ours: (text) => text.replace('Path must start with / character', 'NONE'),
    theirs: (text) =>
      text
        .replace(/^absolute path is .*\n/m, '')
        .replace(/^quota for relative does not exist\.|^Quota does not exist for relative/m, 'NONE'),
  },
];

/** Both texts without the intended differences, and the rules that applied. */
export function normalizeOutputs(line: string, ours: string, theirs: string): { ours: string; theirs: string; rules: string[] } {
  let [a, b] = [ours, theirs];
  const rules: string[] = [];
  for (const { id, appliesTo, ours: change, theirs: changeOther } of cliDifferences) {
    if (!appliesTo(line)) continue;
    const [nextA, nextB] = [change?.(a) ?? a, changeOther?.(b) ?? b];
    if (nextA !== a || nextB !== b) rules.push(id);
    [a, b] = [nextA, nextB];
  }
  return { ours: a, theirs: b, rules };
}
