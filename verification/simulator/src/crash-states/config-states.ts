/**
 * The files of a configuration after a power loss at any moment of a reconfiguration. From each of
 * these folders a start must find the configuration that was active before or the one that becomes
 * active, and must not have forgotten one that may become active: a server that has acknowledged it
 * counts by it as well.
 */
import { crc32 } from 'node:zlib';
import { formatQuorumConfig, parseQuorumConfig, type QuorumConfig } from '@tskeeper/protocol';
import { crashChoices, type DiskImage, type Logger, SeededRandom, VirtualDisk } from '@tskeeper/runtime';
import { ConfigFiles } from '@tskeeper/runtime/internal';
import { configFileOptions, operatorConfigText, storedConfigs, writeOperatorConfig } from '../world/config-folder.ts';

/** What a server stores at once. */
interface Stored {
  readonly active: QuorumConfig;
  readonly next: QuorumConfig | undefined;
}

/** A moment, and what was stored before and is being stored then. */
interface ConfigPoint {
  readonly image: DiskImage;
  readonly before: Stored;
  readonly target: Stored;
}

export interface ConfigStatesResult {
  readonly states: number;
  readonly finding: string | undefined;
}

const ownSid = 1;
const silent = () => undefined;
const logger: Logger = { debug: silent, info: silent, warn: silent, error: silent };

function config(version: number, ...sids: readonly number[]): QuorumConfig {
  return { ...parseQuorumConfig(sids.map((sid) => `server.${sid}=h${sid}:2888:3888:participant;0.0.0.0:2181`).join('\n')), version };
}

/**
 * The first leader gives a version; a reconfiguration is proposed and committed, another is proposed
 * and taken back, and a third comes so late that its leader has completed it.
 */
function* steps(): Generator<Stored> {
  const [operator, first, second] = [config(0, 1, 2, 3), config(0x1_0000_0000, 1, 2, 3), config(0x1_0000_0005, 1, 2, 3, 4)];
  const [abandoned, third] = [config(0x1_0000_0009, 1, 4), config(0x2_0000_0003, 1, 4, 5)];
  yield { active: operator, next: first };
  yield { active: first, next: undefined };
  yield { active: first, next: second };
  yield { active: second, next: undefined };
  yield { active: second, next: abandoned };
  yield { active: second, next: undefined };
  yield { active: second, next: third };
  yield { active: third, next: undefined };
}

/** Runs through every state that a power loss can leave. */
export async function checkConfigStates(seed: number): Promise<ConfigStatesResult> {
  const random = new SeededRandom(seed);
  const seen = new Set<string>();
  for (const point of await recordPoints()) {
    for (const choice of crashChoices(point.image, random)) {
      const disk = new VirtualDisk(point.image, (_item, index) => choice[index]!);
      const key = `${textOf(point.before)} ${textOf(point.target)} ${crc32(disk.fingerprint((bytes) => crc32(bytes)))}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const complaint = await checkState(disk, point);
      if (complaint === undefined) continue;
      return { states: seen.size, finding: `${complaint}\n  before: ${textOf(point.before)}\n  on the way to: ${textOf(point.target)}` };
    }
  }
  return { states: seen.size, finding: undefined };
}

async function recordPoints(): Promise<ConfigPoint[]> {
  const disk = new VirtualDisk();
  let before: Stored = { active: config(0, 1, 2, 3), next: undefined };
  writeOperatorConfig(disk, before.active);
  const files = open(disk, before);
  await files.backUp();
  const points: ConfigPoint[] = [];
  for (const target of steps()) {
    const stored = before;
    const capture = () => void points.push({ image: disk.capture(), before: stored, target });
    capture();
    disk.onChanged = capture;
    await files.save(target.active, target.next, ownSid);
    disk.onChanged = undefined;
    points.push({ image: disk.capture(), before: target, target });
    before = target;
  }
  return points;
}

function open(disk: VirtualDisk, { active, next }: Stored): ConfigFiles {
  return new ConfigFiles(disk.attach(), configFileOptions(disk), active, next, logger);
}

/** The folder as a start finds it, and after the server has stored the target again. */
async function checkState(disk: VirtualDisk, { before, target }: ConfigPoint): Promise<string | undefined> {
  try {
    const found = storedConfigs(disk);
    const wrong = wrongWith(found, found.dynamicFile === undefined, before, target);
    if (wrong !== undefined) return wrong;
    const files = open(disk, found);
    await files.backUp();
    await files.save(target.active, target.next, ownSid);
    const again = storedConfigs(disk);
    if (textOf(again) !== textOf(target) && again.dynamicFile !== undefined) return `stored again, the files have ${textOf(again)}`;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function wrongWith(found: Stored & { readonly text: string }, isStatic: boolean, before: Stored, target: Stored): string | undefined {
  const isActive = [before, target].some(({ active }) => same(active, found.active));
  if (!isActive) return `a start finds ${textOf(found)}`;
  if (!found.text.includes(operatorConfigText)) return `zoo.cfg has lost what the operator wrote: ${found.text}`;
  // A zoo.cfg that names the servers has no file beside it; the log has what may become active.
  if (isStatic) return undefined;
  const isNext = [before, target].some(({ next }) => (next === undefined ? found.next === undefined : same(next, found.next)));
  if (!isNext && found.next !== undefined && !same(found.next, found.active)) return `a start finds ${textOf(found)}`;
  const mustKnow = before.next !== undefined && (same(before.next, target.active) || same(before.next, target.next));
  if (mustKnow && !same(before.next, found.next) && !same(before.next, found.active))
    return `a start has forgotten what may become active: ${textOf(found)}`;
  return undefined;
}

function same(one: QuorumConfig | undefined, other: QuorumConfig | undefined): boolean {
  return one !== undefined && other !== undefined && formatQuorumConfig(one) === formatQuorumConfig(other);
}

function textOf({ active, next }: Stored): string {
  const text = (each: QuorumConfig) => `${each.version.toString(16)} (${[...each.servers.keys()].join(', ')})`;
  return next === undefined ? text(active) : `${text(active)}, next ${text(next)}`;
}
