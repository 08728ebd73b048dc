export type ServerKind = 'ours' | 'java-3.9.5' | 'java-3.8.0' | 'java-3.5.10';

export interface ServerOptions {
  readonly kind: ServerKind;
  /** Contains zoo.cfg, server.log and, unless `dataDir` is set, data/. */
  readonly folder: string;
  readonly dataDir?: string;
  /**
   * Keys of zoo.cfg, in addition to the defaults of `startServer`. With its own clientPort a server
   * has the same port in each life.
   */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** Java system properties; our server takes them as -D options. */
  readonly properties?: Readonly<Record<string, string | number | boolean>>;
  /** The JVM's heap, as for -Xmx. */
  readonly heap?: string;
  /** For ZooKeeper: further options of the JVM. */
  readonly jvmArguments?: readonly string[];
  /**
   * For our server: arguments before the program on node's command line, such as
   * --max-old-space-size=64.
   */
  readonly nodeArguments?: readonly string[];
  /** The limit of open files, as `ulimit -n` sets it. */
  readonly openFilesMax?: number;
  /** Variables in addition to those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly readyTimeoutMs?: number;
}

export interface ServerProcess {
  readonly kind: ServerKind;
  readonly port: number;
  readonly dataDir: string;
  readonly connectString: string;
  readonly pid: number;
  readonly alive: boolean;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  log(): Promise<string>;
  fourLetterWord(word: string): Promise<string>;
  /** Resolves with whether the server ended after SIGTERM. */
  stop(timeoutMs?: number): Promise<boolean>;
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
}

export declare function freePort(): Promise<number>;
export declare function reservePort(): Promise<number>;
export declare function fourLetterWord(port: number, word: string, timeoutMs?: number): Promise<string>;
export declare function launchServer(options: ServerOptions, port: number): Promise<ServerProcess>;
export declare function startServer(options: ServerOptions): Promise<ServerProcess>;
