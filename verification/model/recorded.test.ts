/** The model answers as a recorded ZooKeeper 3.9.5 did, frame by frame. */
import { describe, expect, it } from 'vitest';
import { difference } from './compare.ts';
import type { Message, OperationKind } from '@tskeeper/simulator';
import { connectRequestOf, frameOf, recordedCaptures, type RecordedFrame, requestOf } from './recorded.ts';
import { type ModelOutput, ReferenceModel } from '@tskeeper/simulator';
import { TimeMapping } from './times.ts';
import { decodeConnectResponse, decodeMessage, encodeConnect, encodeRequest } from '@tskeeper/harness';

/** Where the model and a recording differ; undefined if they agree. */
function replay(captures: readonly (readonly RecordedFrame[])[]): string | undefined {
  const model = new ReferenceModel({
    extendedTypesEnabled: true,
    minSessionTimeoutMs: 4000,
    maxSessionTimeoutMs: 40_000,
    javaCompatible: true,
  });
  const times = new TimeMapping();
  const expected = new Map<number, ModelOutput[]>();
  const heard = new Map<number, Message[]>();
  const kinds = new Map<number, OperationKind>();
  let cnxn = 0;
  const take = (all: ModelOutput[]): void => {
    for (const one of all) {
      if (one.message.kind !== 'closed') expected.set(one.cnxn, [...(expected.get(one.cnxn) ?? []), one]);
    }
  };
  // The events of one connection may follow the frames of a later one, so they are assigned by the
  // capture's last steps.
  const listener = new Map<string, number>();
  for (const capture of captures) {
    for (const [at, recorded] of capture.entries()) {
      if (recorded.hex === '') continue;
      if (recorded.decoded['ConnectRequest'] !== undefined) {
        cnxn++;
        const request = connectRequestOf(recorded);
        if (!encodeConnect(request).equals(Buffer.from(recorded.hex, 'hex'))) return `${recorded.step}: our encoding differs`;
        const answer = capture[at + 1]!;
        const given = answer.hex === '' ? 0n : decodeConnectResponse(frameOf(answer)).sessionId;
        model.connect(cnxn, '127.0.0.1');
        take(model.handshake(cnxn, request, given));
        if (!listener.has(recorded.step)) listener.set(recorded.step, cnxn);
      } else if (recorded.dir === 'C>S') {
        const { xid, operation } = requestOf(recorded);
        if (!encodeRequest(xid, operation).equals(Buffer.from(recorded.hex, 'hex'))) return `${recorded.step}: our encoding differs`;
        kinds.set(xid, operation.kind);
        take(model.perform(model.admit(cnxn, xid, operation, times.tick())));
        if (operation.kind === 'auth' && recorded.step.includes('fail')) model.disconnected(cnxn);
      } else {
        const reattached = listener.get('reattach to the session of the first capture');
        const late = recorded.step === 'notification' && reattached !== undefined;
        const message =
          recorded.decoded['ConnectResponse'] === undefined
            ? decodeMessage(frameOf(recorded), (xid) => kinds.get(xid)!)
            : decodeConnectResponse(frameOf(recorded));
        const to = late ? reattached : cnxn;
        heard.set(to, [...(heard.get(to) ?? []), message]);
      }
    }
  }
  for (const [id, all] of expected) {
    const actual = heard.get(id) ?? [];
    const translated = all.map((one, at) => ({ ...one, message: times.translate(one.message, actual[at]) }));
    const wrong = difference(translated, actual);
    if (wrong !== undefined) return `connection ${id}, ${wrong}`;
  }
  return undefined;
}

describe('the model against a recorded ZooKeeper 3.9.5', () => {
  const { A, B } = recordedCaptures('client-3.9.5.json');

  it('gives every reply and every event of both captures', () => {
    expect(replay([A, B])).toBeUndefined();
  });

  it('fails for any single reply or event with one bit changed', () => {
    const green: string[] = [];
    let changed = 0;
    for (const [at, recorded] of A.entries()) {
      if (recorded.dir !== 'S>C' || recorded.hex === '') continue;
      // The last bit of err in a reply or event, and of the session id in a connect response.
      const bytes = Buffer.from(recorded.hex, 'hex');
      bytes[19] = bytes[19]! ^ 1;
      if (!isRed(A.with(at, { ...recorded, hex: bytes.toString('hex') }))) green.push(recorded.step);
      changed++;
    }
    expect(green).toEqual([]);
    expect(changed).toBeGreaterThan(50);
  });

  function isRed(spoiled: RecordedFrame[]): boolean {
    try {
      return replay([spoiled, B]) !== undefined;
    } catch {
      return true;
    }
  }
});
