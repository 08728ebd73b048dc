/** How to reach an ensemble: the options before a command. */
export interface ConnectionSettings {
  /** `host:port,host:port/chroot` */
  readonly connectString: string;
  /** Session timeout to request. */
  readonly timeoutMs: number;
  /**
   * How long to search for a server that opens a session; undefined if the user did not say: then
   * zk/session-search.ts decides.
   */
  readonly connectTimeoutMs: number | undefined;
  readonly readOnly: boolean;
  /** Longest request and reply; undefined: ZooKeeper's default. */
  readonly maxPacketBytes: number | undefined;
  readonly auth: readonly { readonly scheme: string; readonly auth: string }[];
}
