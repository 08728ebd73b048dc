/**
 * What many tests do with an ensemble and its clients. Each call returns when it is done, and throws
 * if it never is.
 */
import { CreateMode, openAcl, type OperationName, type RequestOf } from '@tskeeper/protocol';
import { type Answer, EnsembleClient } from './ensemble-client.ts';
import type { Ensemble, Node } from './ensemble.ts';

/** Starts all servers; they serve. */
export function serve(ensemble: Ensemble): void {
  for (const node of ensemble.nodes) node.start();
  if (!ensemble.runUntil(() => ensemble.isWhole, 10_000)) throw new Error(`it does not serve: ${ensemble.describe()}`);
}

/** A new client of this server, whose handshake is answered. */
export function joined(ensemble: Ensemble, node: Node, timeOut?: number): EnsembleClient {
  return rejoined(ensemble, node, new EnsembleClient(), timeOut);
}

/** The client connects to this server, and its handshake is answered: it is served, or refused. */
export function rejoined(ensemble: Ensemble, node: Node, client: EnsembleClient, timeOut?: number): EnsembleClient {
  client.connect(node, timeOut);
  if (!ensemble.runUntil(() => client.isAnswered || client.isClosed, 5000)) throw new Error('the handshake was not answered');
  return client;
}

/** Sends a request and waits for the reply; undefined: the connection was closed instead. */
export function delivered<Name extends OperationName>(
  ensemble: Ensemble,
  client: EnsembleClient,
  name: Name,
  record: RequestOf<Name>,
): Answer | undefined {
  const asked = client.ask(name, record);
  if (!ensemble.runUntil(() => asked.answer !== undefined || client.isClosed, 10_000)) throw new Error(`${name} was not answered`);
  return asked.answer;
}

export function create(path: string, flags: number = CreateMode.persistent, data: string | null = null): RequestOf<'create'> {
  return { path, data: data === null ? null : Buffer.from(data), acl: openAcl, flags };
}
