/**
 * The files of a configuration beside zoo.cfg: what they contain, and what a loss of power or a
 * folder that cannot be written leaves.
 */
import { formatQuorumConfig, parseQuorumConfig } from '@tskeeper/protocol';
import { crashChoices, type LogFields, SeededRandom, VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { ConfigFiles } from '../../src/storage/config-files.ts';

const line = (sid: number) => `server.${sid}=h${sid}:2888:3888:participant;0.0.0.0:2181`;
const config = (version: string, ...sids: readonly number[]) => parseQuorumConfig([...sids.map(line), `version=${version}`].join('\n'));
const edit = (text: string, file: string, drops: boolean) =>
  `${text
    .split('\n')
    .filter((each) => each !== '' && !/^(?:server\.|dynamicConfigFile)/.test(each) && !(drops && each.startsWith('clientPort')))
    .join('\n')}\ndynamicConfigFile=${file}\n`;
const first = config('0', 1, 2, 3);
const next = config('100000004', 1, 10, 2);
const written = `dataDir=/data\nclientPort=2181\n${line(1)}\n`;

async function folderWith(zooCfg: string): Promise<VirtualDisk> {
  const disk = new VirtualDisk();
  await disk.ensureFolder('/conf');
  const file = await disk.open('/conf/zoo.cfg', 'create');
  file.write(0, Buffer.from(zooCfg));
  await new Promise((resolve) => {
    file.sync(resolve);
  });
  await file.close();
  await disk.syncFolder('/conf');
  return disk;
}

async function filesOf(disk: VirtualDisk): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await disk.list('/conf')).sort()) {
    const file = await disk.open(`/conf/${name}`, 'existing');
    found[name] = (await file.read(0, 10_000)).toString();
    await file.close();
  }
  return found;
}

function files(disk: VirtualDisk, lines: string[] = []): ConfigFiles {
  const note = (message: string, fields: LogFields) => void lines.push(`${fields.event} ${message}`);
  const logger = { debug: note, info: note, warn: note, error: note };
  return new ConfigFiles(disk, { path: '/conf/zoo.cfg', namesServers: true, edit }, first, undefined, logger);
}

describe('A58: the files of a configuration', () => {
  test('hold a proposed one with its version, and the active one without', async () => {
    const disk = await folderWith(written);
    const stored = files(disk);
    await stored.backUp();
    await stored.save(first, next, 1);
    expect(await filesOf(disk)).toEqual({
      'zoo.cfg': written,
      'zoo.cfg.bak': written,
      'zoo.cfg.dynamic.next': formatQuorumConfig(next),
    });
    await stored.save(next, undefined, 1);
    expect(await filesOf(disk)).toEqual({
      'zoo.cfg': 'dataDir=/data\ndynamicConfigFile=/conf/zoo.cfg.dynamic.100000004\n',
      'zoo.cfg.bak': written,
      // As ZooKeeper sorts them.
      'zoo.cfg.dynamic.100000004': [line(10), line(1), line(2)].join('\n'),
    });
  });

  test('leave the client port in zoo.cfg if the servers have none in the configuration', async () => {
    const disk = await folderWith(written);
    const bare = parseQuorumConfig(formatQuorumConfig(next).replaceAll(/;.*$/gm, ''));
    await files(disk).save(bare, undefined, 1);
    expect((await filesOf(disk))['zoo.cfg']).toContain('clientPort=2181');
  });

  test('survive a loss of power at any moment: zoo.cfg names a complete file, or the servers themselves', async () => {
    const disk = await folderWith(written);
    const stored = files(disk);
    await stored.save(first, next, 1);
    const images: VirtualDisk[] = [];
    const random = new SeededRandom(1);
    disk.onChanged = () => {
      const image = disk.capture();
      for (const kept of crashChoices(image, random)) images.push(new VirtualDisk(image, (_item, index) => kept[index]!));
    };
    await stored.save(next, undefined, 1);
    expect(images.length).toBeGreaterThan(10);
    for (const image of images) {
      const found = await filesOf(image);
      const named = /^dynamicConfigFile=\/conf\/(.*)$/m.exec(found['zoo.cfg']!)?.[1];
      if (named === undefined) expect([found['zoo.cfg'], found['zoo.cfg.dynamic.next']]).toEqual([written, formatQuorumConfig(next)]);
      else expect(found[named]).toBe([line(10), line(1), line(2)].join('\n'));
    }
  });

  test('are given up, with a line for the operator, where the folder cannot be written', async () => {
    const disk = await folderWith(written);
    disk.fault = ({ operation }) => (operation === 'open' ? { code: 'EROFS' } : undefined);
    const lines: string[] = [];
    expect(await files(disk, lines).save(next, undefined, 1)).toBe(false);
    expect(lines).toEqual([
      expect.stringMatching(
        /^config\.not-written The configuration of the ensemble could not be written to \/conf: .*EROFS\. Let this server write there/,
      ),
    ]);
  });
});
