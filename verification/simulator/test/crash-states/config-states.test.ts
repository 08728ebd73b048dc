import { describe, expect, test } from 'vitest';
import { checkConfigStates } from '../../src/crash-states/config-states.ts';

describe('the files of a configuration', () => {
  test('are safe to start from after a power loss at any moment of a reconfiguration', async () => {
    const { states, finding } = await checkConfigStates(1);
    expect(finding).toBeUndefined();
    expect(states).toBeGreaterThan(50);
  });
});
