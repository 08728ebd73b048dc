/**
 * The settings of all sources, looked up by key, and the sentences about them for the operator. A
 * key that no source sets has the default of the table of keys.
 */
import { type ConfigKey, findKey } from './config-keys.ts';
import type { ConfigSources, ReadFile } from './config-sources.ts';
import { readBoolean, readInteger, readReal, readYesNo } from './setting-values.ts';
import type { Setting } from './settings.ts';

/** Keys whose values must not be logged. */
const secret = /digest$|password|passwd|secret/i;

export class ConfigSettings {
  /** zoo.cfg, or a word in its place; for messages. */
  readonly configFile: string;
  readonly readFile: ReadFile;
  readonly loadModule: (specifier: string) => unknown;
  readonly #settings = new Map<string, Setting>();
  /** Lines that name servers, groups and weights. */
  readonly quorumLines = new Map<string, Setting>();
  /** What -D sets, by its whole name, and Java's own properties of the environment. */
  readonly javaProperties = new Map<string, string>();
  /** Settings that only an ensemble uses. */
  readonly ensembleSettings: Setting[] = [];
  readonly warnings: string[] = [];
  readonly notices: string[] = [];

  constructor({ file, readFile, loadModule }: ConfigSources) {
    this.configFile = file?.name ?? 'configuration';
    this.readFile = readFile ?? noFiles;
    this.loadModule = loadModule ?? noModules;
  }

  /** Sets a key; a later value overrides an earlier one. */
  set(setting: Setting): void {
    const { name, value, where } = setting;
    const earlier = this.#settings.get(name);
    if (earlier !== undefined && earlier.value !== value) this.warn(earlier.where, `overridden by ${where}.`);
    this.#settings.set(name, setting);
  }

  warn(where: string, sentence: string): void {
    this.warnings.push(`${where}: ${sentence}`);
  }

  notice(where: string, name: string, because: string): void {
    this.notices.push(`${where}: ${name} is accepted and has no effect: ${because}.`);
  }

  // Reading values.

  /** The settings `name` and `name.<anything>`, in order. */
  settingsOf(name: string): readonly Setting[] {
    return [...this.#settings.values()].filter((each) => each.name === name || each.name.startsWith(`${name}.`));
  }

  /** Whether a source sets the key. */
  isSet(name: string): boolean {
    return this.#settings.has(name);
  }

  /** The setting, or the key's default as if it were set. */
  #setting(name: string): { key: ConfigKey; setting: Setting } {
    const key = findKey(name, ['file', 'property', 'bare', 'either']);
    if (key === undefined) throw new Error(`${name} is not in the table of keys`);
    return { key, setting: this.#settings.get(name) ?? { name, value: key.default, where: 'default' } };
  }

  text(name: string): string {
    return this.#setting(name).setting.value;
  }

  boolean(name: string): boolean {
    const { key, setting } = this.#setting(name);
    return key.value === 'yes or no' ? readYesNo(setting) : readBoolean(setting);
  }

  int(name: string): number {
    const read = this.maybeInt(name);
    if (read === undefined) throw new Error(`${name} has neither a value nor a default`);
    return read;
  }

  /** Undefined when the key is not set and has no default. */
  maybeInt(name: string): number | undefined {
    const { key, setting } = this.#setting(name);
    const value = setting.value === '' ? key.default : setting.value;
    if (value === '') return undefined;
    return readInteger({ ...setting, value }, key.value as { min: number; max: number }, key.source);
  }

  real(name: string): number {
    const { key, setting } = this.#setting(name);
    const { min } = key.value as { min?: number };
    return readReal(setting.value === '' ? { ...setting, value: key.default } : setting, min);
  }

  /** Where a key is set, or else the file it would be in. */
  where(name: string): string {
    return this.#settings.get(name)?.where ?? this.configFile;
  }

  /** Settings that differ from their defaults, by key, as written; secrets are masked. */
  changed(isInEnsemble: boolean): Record<string, string> {
    const changed: Record<string, string> = {};
    const settings = [...this.#settings.values(), ...this.quorumLines.values()];
    for (const setting of settings) {
      const { name, value } = setting;
      // A standalone server has notices about these.
      if (!isInEnsemble && this.ensembleSettings.includes(setting)) continue;
      const byDefault = findKey(name, ['file', 'property', 'bare', 'either'])?.default;
      if (value !== '' && value !== byDefault) changed[name] = secret.test(name) ? '(masked)' : value;
    }
    return changed;
  }
}

function noFiles(): string {
  throw new Error('no readFile is given');
}

function noModules(): never {
  throw new Error('no loadModule is given');
}
