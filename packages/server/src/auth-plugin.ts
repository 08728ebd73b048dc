/**
 * An authentication scheme that an operator brings along: a module, named by authProvider.* in
 * zoo.cfg. Whatever it does, the server continues: an exception or a result of another type refuses
 * the client, and is logged.
 */
import type { AuthOutcome, AuthProvider, AuthResult, AuthTicket, CnxnContext } from '@tskeeper/core';
import type { Logger } from '@tskeeper/runtime';
import { RateLimitedLog } from '@tskeeper/runtime/internal';

/** The client that authenticates. */
export interface AuthClient {
  /** Its numeric address. */
  readonly address: string;
  /** The port that it comes from. */
  readonly port: number;
}

/** The default export of the module, or what a function returns that is its default export. */
export interface AuthPlugin {
  /** The scheme in auth requests and in ACLs: `token`. Not `world`, `auth`, `super` or `sasl`. */
  readonly scheme: string;
  /**
   * Checks what the client sent; null if that is nothing. Returns the ids that it has proved, of
   * this scheme, or undefined to refuse it: then it gets AuthFailed, and its connection is closed.
   * With a promise the client's later requests wait for it. A session that waits longer than its
   * timeout expires.
   */
  authenticate(credentials: Uint8Array | null, client: AuthClient): readonly string[] | undefined | Promise<readonly string[] | undefined>;
  /** Whether an ACL may name the id. */
  isValidId(id: string): boolean;
  /** Whether a client with the id `id` satisfies the ACL entry `aclId`. Default: if they are equal. */
  matches?(id: string, aclId: string): boolean;
  /** The name that whoAmI shows. Default: the id. */
  userName?(id: string): string;
}

/** What the adapter needs of a running server. */
export interface AuthPluginServer {
  authenticated(ticket: AuthTicket, result: AuthResult): void;
}

/** Makes a provider of the core of a plug-in. */
export class PluginProvider implements AuthProvider {
  readonly scheme: string;
  readonly provesIdentity = true;
  readonly #plugin: AuthPlugin;
  #server: AuthPluginServer | undefined;
  #log: RateLimitedLog | undefined;
  /** Results that came before the server. */
  readonly #early: { readonly ticket: AuthTicket; readonly result: AuthResult }[] = [];

  constructor(plugin: AuthPlugin) {
    this.scheme = plugin.scheme;
    this.#plugin = plugin;
  }

  /** The server runs, and takes results from here on. */
  serve(server: AuthPluginServer, logger: Logger): void {
    this.#server = server;
    this.#log = new RateLimitedLog(logger);
    for (const { ticket, result } of this.#early.splice(0)) server.authenticated(ticket, result);
  }

  authenticate(credentials: Buffer | null, { remoteAddress, remotePort }: CnxnContext, ticket: AuthTicket): AuthOutcome {
    try {
      const decision = this.#plugin.authenticate(credentials, { address: remoteAddress, port: remotePort });
      if (!(decision instanceof Promise)) return this.#resultOf(decision);
      decision.then(
        (ids) => this.#decided(ticket, this.#resultOf(ids)),
        (error: unknown) => this.#decided(ticket, refusalOf(error)),
      );
      return { kind: 'later' };
    } catch (error) {
      return refusalOf(error);
    }
  }

  isValidId(id: string): boolean {
    return this.#guarded('isValidId', false, () => this.#plugin.isValidId(id));
  }

  matches(identity: string, aclId: string): boolean {
    if (this.#plugin.matches === undefined) return identity === aclId;
    return this.#guarded('matches', false, () => this.#plugin.matches!(identity, aclId));
  }

  userName(identity: string): string {
    if (this.#plugin.userName === undefined) return identity;
    return this.#guarded('userName', '', () => this.#plugin.userName!(identity));
  }

  #decided(ticket: AuthTicket, result: AuthResult): void {
    if (this.#server === undefined) this.#early.push({ ticket, result });
    else this.#server.authenticated(ticket, result);
  }

  #resultOf(ids: unknown): AuthResult {
    if (ids === undefined) return { kind: 'refused', reason: 'its authentication provider refused it' };
    if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) {
      return { kind: 'refused', reason: 'its authentication provider returned something else than a list of ids or undefined' };
    }
    return { kind: 'done', identities: ids.map((id) => ({ scheme: this.scheme, id })) };
  }

  /** A result of another type, or an exception, counts as `otherwise`. */
  #guarded<T extends boolean | string>(method: string, otherwise: T, call: () => T): T {
    let what: string;
    try {
      const result = call();
      if (typeof result === typeof otherwise) return result;
      what = `returned a value of the type ${typeof result}`;
    } catch (error) {
      what = `threw an error: ${messageOf(error)}`;
    }
    const reason = `${method} ${what}`;
    const sentence = `The authentication provider of the scheme ${this.scheme} failed: ${reason}.`;
    this.#log?.warn(performance.now(), sentence, { event: 'auth.provider-failed', scheme: this.scheme, reason });
    return otherwise;
  }
}

function refusalOf(error: unknown): AuthResult {
  return { kind: 'refused', reason: `its authentication provider threw an error: ${messageOf(error)}` };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
