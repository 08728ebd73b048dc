/** Marks: rare things that happen only where the membership of an ensemble changes. */
import { counterOf, epochOf, ErrorCode, type Zxid } from '@tskeeper/protocol';
import { committedConfigs } from '../record/config-history.ts';
import { configVersionOf, type Members, serverNameOf } from '../record/config-text.ts';
import type { PeerEvent } from '../record/peer-event.ts';
import type { Recording } from '../record/recording.ts';
import type { Replay } from '../replay/replay-result.ts';
import { otherServerPort } from '../clients/client-world.ts';
import { type Member, membersIn } from '../clients/member-line.ts';
import type { Outcome } from './seed-run.ts';

type Count = (outcome: Outcome, replay: Replay) => number;

const refusals = ['ReconfigInProgress', 'BadVersion', 'BadArguments', 'NewConfigNoQuorum', 'NoAuth'] as const;

function refused(err: number): Count {
  return ({ recording }) =>
    recording.cnxns.reduce(
      (sum, { requests }) => sum + requests.filter(({ name, reply }) => name === 'reconfig' && reply?.err === err).length,
      0,
    );
}

function annotated(mark: string): Count {
  return ({ recording }) => recording.annotations.filter(({ text }) => text === mark).length;
}

/** Counts the changes from one committed configuration to the next. */
function changes(isIt: (before: Members, after: Members, texts: readonly [string, string]) => boolean): Count {
  return ({ recording }) => {
    const configs = committedConfigs(recording);
    return configs.slice(1).filter(({ members, text }, at) => isIt(configs[at]!.members, members, [configs[at]!.text, text])).length;
  };
}

function roleChanged(isVoterBefore: boolean): (before: Members, after: Members) => boolean {
  return (before, after) =>
    [...before].some(([name, { isVoter }]) => isVoter === isVoterBefore && after.get(name)?.isVoter === !isVoterBefore);
}

/** Counts the changes of one server, from one committed configuration to the next. */
function memberChanged(isIt: (before: Member, after: Member) => boolean): Count {
  return ({ recording }) => {
    const configs = committedConfigs(recording).map(({ text }) => membersIn(text));
    return configs.slice(1).reduce((sum, after, at) => {
      const before = new Map(configs[at]!.map((member) => [member.sid, member]));
      return sum + after.filter((member) => before.has(member.sid) && isIt(before.get(member.sid)!, member)).length;
    }, 0);
  };
}

function hasDeadAddress({ second }: Member): boolean {
  return second === 'dead first' || second === 'dead last';
}

function servedElsewhere(concerns: (recording: Recording, client: string) => boolean): Count {
  return ({ recording }) =>
    recording.cnxns.filter(({ port, session = 0n, client }) => port === otherServerPort && session !== 0n && concerns(recording, client))
      .length;
}

/** Only of seeds with an oracle. */
function withOracle(count: Count): Count {
  return (outcome, replay) => (outcome.recording.limits.oracleSid === undefined ? 0 : count(outcome, replay));
}

/** Txns that a leader applies under a later configuration of two voters, of which the other does not have them. */
function committedAlone(recording: Recording): number {
  const configs = committedConfigs(recording);
  const logged = new Map<string, Zxid>();
  const leading = new Set<string>();
  let count = 0;
  for (const event of recording.peerEvents) {
    const { server } = event;
    if (event.kind === 'serves' && event.role === 'leader') leading.add(server);
    if (event.kind === 'roleEnded' || event.kind === 'processGone') leading.delete(server);
    if (event.kind === 'logged' || event.kind === 'started' || event.kind === 'replaced') logged.set(server, event.zxid);
    if (event.kind !== 'applied' || !leading.has(server)) continue;
    const { zxid, members } = configs.findLast((config) => config.zxid < event.zxid)!;
    const others = [...members].filter(([name, { isVoter }]) => isVoter && name !== server).map(([name]) => name);
    if (zxid > 0 && others.length === 1 && (logged.get(others[0]!) ?? 0) < event.zxid) count++;
  }
  return count;
}

function votersText(members: Members): string {
  return [...members].flatMap(([name, { isVoter }]) => (isVoter ? [name] : [])).join();
}

const votersOf = (members: Members): number => [...members.values()].filter(({ isVoter }) => isVoter).length;

export const reconfigMarks: Readonly<Record<string, Count>> = {
  'a reconfiguration was committed': changes(() => true),
  ...Object.fromEntries(refusals.map((name): [string, Count] => [`a reconfiguration was refused: ${name}`, refused(ErrorCode[name])])),
  'a server joined': changes((before, after) => [...after.keys()].some((name) => before.get(name) === undefined)),
  'a server was removed': changes((before, after) => [...before.keys()].some((name) => after.get(name) === undefined)),
  'a voter became an observer': changes(roleChanged(true)),
  'an observer became a voter': changes(roleChanged(false)),
  'an ensemble grew from one voter': changes((before, after) => votersOf(before) === 1 && votersOf(after) > 1),
  'an ensemble shrank to one voter': changes((before, after) => votersOf(before) > 1 && votersOf(after) === 1),
  'two voters with an oracle became three': withOracle(changes((before, after) => votersOf(before) === 2 && votersOf(after) === 3)),
  'more or fewer voters became two with an oracle': withOracle(changes((before, after) => votersOf(before) !== 2 && votersOf(after) === 2)),
  'one of two voters was replaced with an oracle': withOracle(
    changes((before, after) => votersOf(before) === 2 && votersOf(after) === 2 && votersText(before) !== votersText(after)),
  ),
  'one of two voters of a reconfiguration went on alone': withOracle(({ recording }) => committedAlone(recording)),
  'a leader that an oracle favours was removed, or can no longer lead': withOracle(
    ({ recording: { peerEvents, limits } }) =>
      peerEvents.filter(
        (event) => event.kind === 'roleEnded' && event.reason === 'resigned' && event.server === serverNameOf(limits.oracleSid!),
      ).length,
  ),
  'groups and weights were set by a reconfiguration': changes((_before, _after, [, text]) => text.includes('group.')),
  'a server moved to other ports': memberChanged((before, after) => before.isMoved !== after.isMoved && after.second !== 'live'),
  'a server got or lost a second address': memberChanged((before, after) => before.second !== after.second),
  'the membership was changed where servers have dead addresses': changes((_before, _after, [, text]) =>
    membersIn(text).some(hasDeadAddress),
  ),
  'a server got another client port': memberChanged((before, after) => before.clientPort !== after.clientPort),
  'a server got another client address': memberChanged((before, after) => before.isClientHostNamed !== after.isClientHostNamed),
  'a client was served at another client port': servedElsewhere(() => true),
  'a client library was served at another client port': servedElsewhere(({ libraryClients }, client) => libraryClients.has(client)),
  'a server without a log got a vote': annotated('a server without a log got a vote'),
  'a server got another name': changes((_before, _after, [before, text]) => text.split('.other:').length > before.split('.other:').length),
  'a leader was removed, or can no longer lead': ({ recording }) =>
    recording.peerEvents.filter((event) => event.kind === 'roleEnded' && event.reason === 'resigned').length,
  'the lead was handed over without an election': ({ recording }) => handOvers(recording.peerEvents),
  'a pending configuration was completed by a later leader': ({ recording }) => completedLater(recording),
  'a pending configuration was taken back by TRUNC': ({ recording }) => takenBack(recording),
  'a configuration was learned from notifications': ({ recording }) => learnedWhileLooking(recording.peerEvents),
  'a crash left a dynamic file that zoo.cfg does not name': annotated('dynamic file without zoo.cfg'),
  'a crash left a configuration that may become active': annotated('next configuration at a start'),
  'a server restarted with old configuration files': annotated('a server restarted with old configuration files'),
  'a stranger announced a configuration': annotated('a stranger announced a configuration'),
  'the membership was changed at the end': annotated('the membership was changed at the end'),
};

/** A server serves as a leader that no election has found since it served last. */
function handOvers(peerEvents: readonly PeerEvent[]): number {
  const elected = new Set<string>();
  let count = 0;
  for (const { kind, server, ...event } of peerEvents) {
    if (kind === 'elected') elected.add(server);
    if (kind === 'roleEnded' || kind === 'processGone') elected.delete(server);
    if (kind === 'serves' && (event as { role?: string }).role === 'leader' && !elected.has(server)) count++;
  }
  return count;
}

/** Nothing applied it in the epoch in which it was proposed. */
function completedLater(recording: Recording): number {
  const applied = new Set(recording.peerEvents.flatMap((event) => (event.kind === 'applied' ? [event.zxid] : [])));
  return committedConfigs(recording).filter(({ zxid }) => zxid > 0 && !applied.has(zxid)).length;
}

function takenBack({ peerEvents, abandonedReconfigs }: Recording): number {
  const ends = new Map<string, Zxid>();
  let count = 0;
  for (const event of peerEvents) {
    const end = ends.get(event.server) ?? 0;
    if (event.kind === 'replaced' && event.by === 'trunc') {
      count += abandonedReconfigs.filter(({ zxid }) => zxid > event.zxid && zxid <= end && epochOf(zxid) === epochOf(end)).length;
    }
    if (event.kind === 'logged' || event.kind === 'started' || event.kind === 'replaced') ends.set(event.server, event.zxid);
  }
  return count;
}

/** From one configuration to a committed one, while the server takes part in no epoch. */
function learnedWhileLooking(peerEvents: readonly PeerEvent[]): number {
  const [looking, known] = [new Set<string>(), new Set<string>()];
  let count = 0;
  for (const event of peerEvents) {
    const { server } = event;
    if (event.kind === 'looking') looking.add(server);
    if (event.kind === 'elected' || event.kind === 'serves') looking.delete(server);
    if (event.kind === 'processGone') for (const each of [looking, known]) each.delete(server);
    if (event.kind !== 'config') continue;
    if (known.has(server) && looking.has(server) && counterOf(configVersionOf(event.text)) > 0) count++;
    known.add(server);
  }
  return count;
}
