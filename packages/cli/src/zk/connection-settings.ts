/** How to reach an ensemble; the options in front of a command. */
export interface ConnectionSettings {
  /** `host:port,host:port/chroot` */
  readonly server: string;
  /** Session time-out asked for. */
  readonly timeoutMs: number;
  /** How long to look for a server that opens a session; undefined where the user did not say: then zk/connecting.ts decides. */
  readonly connectTimeoutMs: number | undefined;
  readonly readOnly: boolean;
  /** Longest request and answer; undefined: ZooKeeper's default. */
  readonly maxPacketBytes: number | undefined;
  readonly auth: readonly { readonly scheme: string; readonly auth: string }[];
}
