/**
 * The places where a configuration is written. The reader of the sources opens no file itself, so
 * that tests and the simulator can hand over texts.
 */

/** Throws as readFileSync. The encoding is that of Java's properties, ISO 8859-1, by default. */
export type ReadFile = (path: string, encoding?: 'latin1' | 'utf8') => string;

/** The configuration as written, from all places. */
export interface ConfigSources {
  /** zoo.cfg: its name, for messages, and its text. */
  readonly file?: ConfigFile | undefined;
  /** `name=value`, from -D on the command line. */
  readonly definitions?: readonly string[] | undefined;
  /** The variables JVMFLAGS and SERVER_JVMFLAGS are read. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** From the command line or a program; they override zoo.cfg. */
  readonly dataDir?: string | undefined;
  readonly clientPort?: number | undefined;
  readonly clientAddress?: string | undefined;
  /**
   * Reads the file that `dynamicConfigFile` names, the file next to zoo.cfg that a reconfig leaves,
   * myid, and the files of JAAS and Kerberos.
   */
  readonly readFile?: ReadFile | undefined;
  /**
   * Loads a module that authProvider.* names, from the folder of zoo.cfg. Throws if it cannot be
   * loaded. Default: no module can.
   */
  readonly loadModule?: ((specifier: string) => unknown) | undefined;
  /** Whether a file, or anything that is not a folder, has this name. Default: no. */
  readonly isFile?: ((path: string) => boolean) | undefined;
}

export interface ConfigFile {
  readonly name: string;
  readonly text: string;
}
