/**
 * The files of a configuration, beside zoo.cfg, as ZooKeeper keeps them:
 *
 *     zoo.cfg                         dynamicConfigFile= names the next one
 *     zoo.cfg.dynamic.<version hex>   the active configuration; the version is in its name only
 *     zoo.cfg.dynamic.next            one that may become active, with its version
 *     zoo.cfg.bak                     zoo.cfg as it was while it named the servers
 *
 * Each is replaced as a whole, so a crash leaves the old file or the new one. The order of the steps
 * matters: zoo.cfg names a file that is complete, and `next` is removed only after that.
 *
 * A folder that cannot be written, as where zoo.cfg is mounted read-only, costs no data: the
 * configuration is in the log too, and a snapshot shows that it is committed. Then a restart begins with
 * the old file, counts by both configurations, and needs notifications of the servers of the later one.
 */
import { formatQuorumConfig, type QuorumConfig } from '@tskeeper/protocol';
import { type Disk, DiskError } from '../disk.ts';
import type { Logger } from '../logger.ts';
import { replaceFile, withFile } from './disk-helpers.ts';

/** zoo.cfg, and how to change it. The syntax of its lines belongs to the server. */
export interface ConfigFileOptions {
  /** Absolute path of zoo.cfg. */
  readonly path: string;
  /** Whether it names the servers itself. */
  readonly namesServers: boolean;
  /**
   * Returns the text of zoo.cfg without servers, groups, weights and peerType, and with
   * `dynamicConfigFile`. With `dropsClientAddress` it also loses clientPort and clientPortAddress,
   * which the dynamic file then has.
   */
  edit(text: string, dynamicConfigFile: string, dropsClientAddress: boolean): string;
}

/** zoo.cfg is a Java properties file. */
const encoding = 'latin1';
const sizeMax = 16 * 1024 * 1024;

export class ConfigFiles {
  readonly #disk: Disk;
  readonly #options: ConfigFileOptions;
  readonly #logger: Logger;
  readonly #folder: string;
  readonly #name: string;
  /** The version that zoo.cfg names. */
  #storedVersion: number;
  #hasNext: boolean;

  /** `active` and `lastSeen` are what the files contain at the start. */
  constructor(disk: Disk, options: ConfigFileOptions, active: QuorumConfig, lastSeen: QuorumConfig | undefined, logger: Logger) {
    const slash = options.path.lastIndexOf('/');
    this.#disk = disk;
    this.#options = options;
    this.#logger = logger;
    this.#folder = options.path.slice(0, slash);
    this.#name = options.path.slice(slash + 1);
    this.#storedVersion = active.version;
    this.#hasNext = lastSeen !== undefined;
  }

  /** Keeps a copy of a zoo.cfg that names the servers: the first reconfiguration rewrites it. */
  async backUp(): Promise<void> {
    if (!this.#options.namesServers) return;
    await this.#logFailure(async () => this.#replace(`${this.#name}.bak`, await this.#read(this.#options.path)));
  }

  /**
   * Stores both configurations; `lastSeen` is undefined if no change is pending. A failure is logged,
   * and does not stop the server, as in ZooKeeper. Resolves to whether they are stored.
   */
  save(active: QuorumConfig, lastSeen: QuorumConfig | undefined, ownSid: number): Promise<boolean> {
    return this.#logFailure(async () => {
      if (active.version > this.#storedVersion) await this.#saveActive(active, ownSid);
      const next = `${this.#name}.dynamic.next`;
      if (lastSeen !== undefined) await this.#replace(next, formatQuorumConfig(lastSeen));
      else if (this.#hasNext) await this.#remove(next);
      this.#hasNext = lastSeen !== undefined;
    });
  }

  async #saveActive(active: QuorumConfig, ownSid: number): Promise<void> {
    const dynamicName = `${this.#name}.dynamic.${active.version.toString(16)}`;
    await this.#replace(dynamicName, dynamicText(active));
    const hasOwnClientAddress = active.servers.get(ownSid)?.clientAddress !== undefined;
    await this.#replace(
      this.#name,
      this.#options.edit(await this.#read(this.#options.path), `${this.#folder}/${dynamicName}`, hasOwnClientAddress),
    );
    this.#storedVersion = active.version;
  }

  async #read(path: string): Promise<string> {
    return (await withFile(this.#disk, path, (file) => file.read(0, sizeMax))).toString(encoding);
  }

  async #replace(name: string, text: string): Promise<void> {
    await replaceFile(this.#disk, this.#folder, name, `${name}.tmp`, Buffer.from(text, encoding));
  }

  async #remove(name: string): Promise<void> {
    if (!(await this.#disk.exists(`${this.#folder}/${name}`))) return;
    await this.#disk.remove(`${this.#folder}/${name}`);
    await this.#disk.syncFolder(this.#folder);
  }

  /** Returns whether there was no failure. */
  async #logFailure(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#logger.error(
        `The configuration of the ensemble could not be written to ${this.#folder}: ${error.message}. ` +
          'Let this server write there, or write the servers into zoo.cfg before its next start.',
        { event: 'config.not-written', path: error.path, reason: error.message },
      );
      return false;
    }
  }
}

/** Without the version; lines sorted as text, as ZooKeeper writes them. */
function dynamicText(config: QuorumConfig): string {
  const lines = formatQuorumConfig(config).split('\n');
  return lines
    .filter((line) => !line.startsWith('version='))
    .sort()
    .join('\n');
}
