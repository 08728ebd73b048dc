import { expect, it } from 'vitest';
import { Script } from './support/script.ts';

it('F33: four hundred sessions that expire in one tick are expired in slices, and one that pings meanwhile stays', () => {
  const script = new Script();
  script.run('log at once');
  for (let n = 0; n < 400; n++) {
    script.run(`c${n} connects timeout=4000 from=10.0.0.${n % 250}`);
    script.run(`c${n} create /e${n} mode=1`);
  }
  script.run('honest connects timeout=4000');
  expect(script.core.inspect.sessionCount()).toBe(401);

  // The number of sessions expired in one step, which must stay within about two milliseconds.
  let most = 0;
  const { core } = script;
  const wake = core.wake.bind(core);
  core.wake = (now) => {
    const before = core.inspect.lastZxid();
    wake(now);
    most = Math.max(most, core.inspect.lastZxid() - before);
  };
  for (let second = 0; second < 6; second++) {
    script.run('after 1000');
    expect(script.run('honest ping').at(-1)).toMatch(/^honest <- ping/);
  }
  expect(core.inspect.sessionCount()).toBe(1);
  expect(core.inspect.ephemeralCount()).toBe(0);
  expect(most).toBeLessThanOrEqual(64);
});
