import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { OptionError, type OptionRules, parseLine } from '../../src/zk/option-parser.ts';
import { splitWords } from '../../src/zk/split-words.ts';

const rules: OptionRules = {
  options: [
    { name: 's', description: 'flag' },
    { name: 'w', description: 'flag' },
    { name: 'v', value: 'version', description: 'value' },
    { name: 'file', value: 'path', description: 'long value' },
  ],
};

function read(line: string, given: OptionRules = rules): unknown {
  try {
    const parsed = parseLine(line.split(' '), given);
    const options = given.options.filter(({ name }) => parsed.has(name)).map(({ name }) => [name, parsed.value(name)]);
    return [parsed.args, Object.fromEntries(options)];
  } catch (error) {
    if (error instanceof OptionError) return error.message;
    throw error;
  }
}

describe('options of zkCli', () => {
  it.each<[string, unknown]>([
    ['/a', [['/a'], {}]],
    ['-s /a', [['/a'], { s: undefined }]],
    ['/a -s data', [['/a', 'data'], { s: undefined }]],
    ['-sw /a', [['/a'], { s: undefined, w: undefined }]],
    ['-v 3 /a', [['/a'], { v: '3' }]],
    ['-v3 /a', [['/a'], { v: '3' }]],
    ['-v=3 /a', [['/a'], { v: '3' }]],
    ['--v=3 /a', [['/a'], { v: '3' }]],
    ['-sv3 /a', [['/a'], { s: undefined, v: '3' }]],
    ['-v -1 /a', [['/a'], { v: '-1' }]],
    ['-v 1 -v 2 /a', [['/a'], { v: '1' }]],
    ['-file x /a', [['/a'], { file: 'x' }]],
    ['-v "7" /a', [['/a'], { v: '7' }]],
    ['/a -- -s -5', [['/a', '-s', '-5'], {}]],
    ['/a -', [['/a', '-'], {}]],
    ['-q /a', 'Unrecognized option: -q'],
    ['/a -5', 'Unrecognized option: -5'],
    ['-sq /a', 'Unrecognized option: -sq'],
    ['-q=3 /a', 'Unrecognized option: -q=3'],
    ['/a -v', 'Missing argument for option: v'],
    ['-v -s /a', 'Missing argument for option: v'],
  ])('are parsed, or rejected with the message of zkCli, in "%s"', (line, expected) => {
    expect(read(line)).toEqual(expected);
  });

  it('random lines are parsed, or rejected with a sentence', () => {
    const random = new SeededRandom(1);
    const characters = `-=svfile" '/a1\t\u0000é`;
    let refused = 0;
    for (let n = 0; n < 5000; n++) {
      const line = Array.from({ length: random.uint32() % 40 }, () => characters[random.uint32() % characters.length]).join('');
      try {
        parseLine(splitWords(line), rules);
      } catch (error) {
        expect([line, error instanceof OptionError]).toEqual([line, true]);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(100);
    expect(refused).toBeLessThan(5000);
  });

  it('may exclude each other, or be required', () => {
    const exclusive: OptionRules = {
      options: [
        { name: 'n', value: 'val', description: 'num' },
        { name: 'b', value: 'val', description: 'bytes' },
      ],
      common: [{ name: 'o', value: 'format', description: 'format' }],
      exclusive: 'exactly one',
    };
    expect(read('-n 1 -o json /a', exclusive)).toEqual([['/a'], { n: '1' }]);
    expect(read('-n 1 -b 2 /a', exclusive)).toBe(
      "The option 'b' was specified but an option from this group has already been selected: 'n'",
    );
    expect(read('-o json /a', exclusive)).toBe('Missing required option: [-n num, -b bytes]');
    expect(read('/a', { ...exclusive, exclusive: 'at most one' })).toEqual([['/a'], {}]);
  });
});
