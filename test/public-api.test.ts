/**
 * The rules of scripts/doc-rules.js, each with an example that breaks it. `npm run check` applies
 * them to the packages.
 */
import { describe, expect, it } from 'vitest';
import { docComplaints } from '../scripts/doc-rules.js';

/** A member of an interface or a class, in the format of API Extractor. */
function member(kind: string, name: string, type: string, doc: string, more: object = {}): object {
  const range = { startIndex: 1, endIndex: 2 };
  const typed = kind.startsWith('Property') ? { propertyTypeTokenRange: range } : { returnTypeTokenRange: range };
  return {
    kind,
    name,
    docComment: doc && `/**\n * ${doc}\n */\n`,
    excerptTokens: [{ text: `${name}: ` }, { text: type }, { text: ';' }],
    ...typed,
    ...more,
  };
}

function complaints(owner: string, ...members: object[]): string[] {
  const around = { kind: 'Interface', name: owner, docComment: '/** What it is. */', excerptTokens: [], members };
  return docComplaints({ members: [{ kind: 'EntryPoint', members: [around] }] }, ['Client']);
}

describe('the documentation of a public symbol', () => {
  it('exists, except for a single value that needs none', () => {
    expect(complaints('A', member('PropertySignature', 'name', 'string', ''))).toEqual(['A.name has no documentation']);
    expect(complaints('A', member('PropertySignature', 'kind', "'state'", ''))).toEqual([]);
    expect(complaints('A', member('Property', 'names', "'a' | 'b'", ''))).toEqual(['A.names has no documentation']);
  });

  it('states the default of an option', () => {
    const option = (doc: string) => member('PropertySignature', 'readOnly', 'boolean | undefined', doc, { isOptional: true });
    expect(complaints('ConnectOptions', option('Whether it will do.'))).toEqual([
      'ConnectOptions.readOnly is optional, and does not say its default',
    ]);
    expect(complaints('ConnectOptions', option('Whether it will do. Default: false.'))).toEqual([]);
    expect(complaints('Stat', option('Whether it will do.'))).toEqual([]);
  });

  it('states the unit of times and sizes, unless the name does', () => {
    const number = (name: string, doc: string) => complaints('A', member('PropertySignature', name, 'number', doc));
    expect(number('timeout', 'How long.')).toEqual(['A.timeout is a time without a unit']);
    expect(number('timeout', 'How long, in ms.')).toEqual([]);
    expect(number('timeoutMs', 'How long.')).toEqual([]);
    expect(number('pauseMsMax', 'How long at most.')).toEqual([]);
    expect(number('dataLength', 'How much.')).toEqual(['A.dataLength is a size without a unit']);
    expect(number('dataLength', 'Bytes of data.')).toEqual([]);
    expect(number('maxPacketBytes', 'The longest.')).toEqual([]);
    expect(number('version', 'Changes of data.')).toEqual([]);
  });

  it('states the errors with which a call fails', () => {
    const call = (doc: string) => complaints('A', member('Method', 'ask', 'Promise<string>', doc));
    expect(call('Asks.')).toEqual(['A.ask does not say with what it fails']);
    for (const doc of ['Asks. Fails with NoNode.', 'Asks. Never rejects.', 'Asks. Throws.']) expect(call(doc)).toEqual([]);
    expect(complaints('A', member('Method', 'count', 'number', 'Counts.'))).toEqual([]);
  });

  it('states the source of the calls of a client', () => {
    const call = (doc: string) => complaints('Client', member('Method', 'ask', 'string', doc));
    expect(call('Asks.')).toEqual(['Client.ask does not say where it comes from (ZooKeeper, an issue, Curator, an RFC)']);
    expect(call("Asks (ZooKeeper's `ask`).")).toEqual([]);
    expect(call('Asks (ZOOKEEPER-107).')).toEqual([]);
  });
});

describe('a bigint', () => {
  it('is used only for 64-bit values', () => {
    const number = (name: string) => complaints('A', member('PropertySignature', name, 'bigint', 'A number.'));
    expect(number('version')).toEqual(['A.version is a bigint, and has no 64 bits']);
    for (const name of ['mzxid', 'sessionId', 'ephemeralOwner', 'fromConfig']) expect(number(name)).toEqual([]);
  });
});
