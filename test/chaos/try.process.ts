import { mkdtemp, writeFile } from 'node:fs/promises';
import { it } from 'vitest';
import { findingText } from '@tskeeper/simulator';
import { narrate } from '@tskeeper/simulator/internal';
import { buildDiskFaults } from './disk-faults.ts';
import { runEpisode } from './episode.ts';
import { type FaultName, faults } from './faults.ts';
import { KillDeck } from './stage.ts';
it('x', async () => {
  const e = process.env;
  const seed = Number(e['SEED'] ?? 1);
  const folder = await mkdtemp('/tmp/chaos-try-');
  console.log(folder);
  const names = (e['FAULTS']?.split(',') ?? Object.keys(faults)) as FaultName[];
  const r = await runEpisode({
    seed,
    folder,
    servers: Number(e['SERVERS'] ?? 3),
    observers: 0,
    faults: names,
    strikes: Number(e['STRIKES'] ?? 5),
    deck: new KillDeck(seed),
    diskFaults: await buildDiskFaults(),
  });
  await writeFile(`${folder}/story`, narrate(r.recording).join('\n'));
  console.log(
    r.findings.length,
    r.findings
      .slice(0, 12)
      .map((f) => findingText(f).slice(0, 1500))
      .join('\n'),
  );
  const { recording, findings, ...rest } = r;
  console.log(JSON.stringify({ ...rest, marks: Object.fromEntries(r.marks), noted: undefined }));
});
