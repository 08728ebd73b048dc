/**
 * The requests of a client, as they are sent: to compare a recipe with the steps of ZooKeeper's
 * page.
 */
import type { ConnectOptions, Transport } from '@tskeeper/client';
import { OpCode, operationOf, Reader, readRequestHeader } from '@tskeeper/protocol';

const nameOf = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]));
const createModes = ['persistent', 'ephemeral', 'sequential', 'ephemeral sequential', 'container'];

/** Options with a transport that records each request as one line, without guids and pings. */
export function recording(options: ConnectOptions, lines: string[]): ConnectOptions {
  const wire = options.transport!;
  const transport: Transport = {
    resolve: (host) => wire.resolve!(host),
    connect: (address, sink) => {
      const cnxn = wire.connect(address, sink);
      let isHandshake = true;
      return {
        send: (bytes) => {
          const buffer = Buffer.from(bytes);
          for (let at = 0; at < buffer.length; at += 4 + buffer.readInt32BE(at)) {
            if (!isHandshake) lines.push(...describe(new Reader(buffer, at + 4, at + 4 + buffer.readInt32BE(at))));
            isHandshake = false;
          }
          cnxn.send(bytes);
        },
        end: () => cnxn.end(),
        destroy: () => cnxn.destroy(),
      };
    },
  };
  return { ...options, transport };
}

interface Asked {
  readonly path?: string;
  readonly watch?: boolean;
  readonly flags?: number;
}

function describe(reader: Reader): string[] {
  const { type } = readRequestHeader(reader);
  const name = nameOf.get(type) ?? String(type);
  if (name === 'ping') return [];
  const record = operationOf(type)?.request.read(reader);
  if (type !== OpCode.multi) return [line(name, record as Asked | undefined)];
  const { ops } = record as { readonly ops: readonly (Asked & { readonly kind: string })[] };
  return [`multi: ${ops.map((each) => line(each.kind, each)).join(', ')}`];
}

function line(name: string, asked: Asked | undefined): string {
  const parts = [name.replace(/2$/, '')];
  if (asked?.path !== undefined) parts.push(asked.path.replaceAll(/_c_[0-9a-f-]{36}-/g, 'guid-'));
  if (asked?.flags !== undefined) parts.push(createModes[asked.flags] ?? String(asked.flags));
  if (asked?.watch === true) parts.push('watch');
  return parts.join(' ');
}
