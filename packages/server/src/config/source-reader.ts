/**
 * Reads the sources of a configuration into its settings. zoo.cfg wins over -D settings, from the
 * command line and the variables of the environment, as in ZooKeeper. Each setting is checked where
 * it is found, so that a message names its place; a key that nothing reads is reported and not
 * guessed at.
 */
import { ConfigError } from './config-error.ts';
import { type ConfigKey, findKey, jvmProperty, nearestKey } from './config-keys.ts';
import type { ConfigSettings } from './config-settings.ts';
import type { ConfigFile, ConfigSources } from './config-sources.ts';
import { checkSetting } from './setting-values.ts';
import { parseDefinition, parseJavaFlags, parseProperties, type Setting } from './settings.ts';

/** Families whose keys name one server or group each. */
const quorumFamilies: readonly string[] = ['server.*', 'group.*', 'weight.*'];

export class SourceReader {
  readonly #sources: ConfigSources;
  readonly #settings: ConfigSettings;

  constructor(sources: ConfigSources, settings: ConfigSettings) {
    this.#sources = sources;
    this.#settings = settings;
  }

  /** Everything but the dynamic file, which one of the settings names. */
  apply(): void {
    // In ZooKeeper the command line sets properties first and zoo.cfg sets them again, so the file
    // overrides the command line.
    const home = this.#sources.environment?.['HOME'];
    if (home !== undefined) this.#settings.javaProperties.set('user.home', home);
    for (const setting of this.#definitions()) {
      this.#settings.javaProperties.set(setting.name, setting.value);
      this.#applyProperty(setting);
    }
    const { file } = this.#sources;
    if (file !== undefined) this.#applyFile(file);
  }

  #definitions(): Setting[] {
    const environment = this.#sources.environment ?? {};
    const settings: Setting[] = [];
    // zkServer.sh puts SERVER_JVMFLAGS before JVMFLAGS, and of two -D settings with the same name
    // Java uses the later one.
    for (const variable of ['SERVER_JVMFLAGS', 'JVMFLAGS']) {
      const { properties, others } = parseJavaFlags(environment[variable] ?? '', variable);
      settings.push(...properties);
      if (others.length > 0)
        this.#settings.notices.push(`${variable}: ${others.join(' ')} is accepted and has no effect: it is for the Java virtual machine.`);
    }
    return [...settings, ...(this.#sources.definitions ?? []).map((definition) => parseDefinition(definition))];
  }

  #applyProperty(setting: Setting): void {
    const { name, where } = setting;
    if (name.startsWith('zookeeper.')) {
      const short = name.slice('zookeeper.'.length);
      const key = findKey(short, ['property', 'either']);
      if (key !== undefined) return this.#apply(key, { ...setting, name: short });
      const elsewhere = findKey(short, ['file', 'bare']);
      if (elsewhere?.source === 'file')
        return this.#settings.warn(where, `${short} can be set in zoo.cfg only; this setting has no effect.`);
      if (elsewhere !== undefined)
        return this.#settings.warn(where, `${short} is read without the prefix; write -D${short}. This setting has no effect.`);
      return this.#unknown(setting);
    }
    const key = findKey(name, ['bare', 'either']);
    if (key !== undefined) return this.#apply(key, setting);
    if (jvmProperty.test(name)) return this.#settings.notice(where, name, 'it is for the Java virtual machine');
    if (findKey(name, ['property']) !== undefined) {
      return this.#settings.warn(where, `${name} is read with a prefix; write -Dzookeeper.${name}. This setting has no effect.`);
    }
    if (findKey(name, ['file']) !== undefined)
      return this.#settings.warn(where, `${name} can be set in zoo.cfg only; this setting has no effect.`);
    this.#unknown(setting);
  }

  #applyFile(file: ConfigFile): void {
    for (const setting of this.#lastOfEach(parseProperties(file.text, file.name))) {
      const { name, where } = setting;
      const key = findKey(name, ['file', 'property', 'either']);
      if (key !== undefined) this.#apply(key, setting);
      else if (findKey(name, ['bare']) !== undefined) {
        this.#settings.warn(
          where,
          `${name} cannot be set in zoo.cfg, as in ZooKeeper; pass -D${name}=${setting.value}. This line has no effect.`,
        );
      } else this.#unknown(setting);
    }
  }

  #lastOfEach(settings: readonly Setting[]): Setting[] {
    const last = new Map(settings.map((setting) => [setting.name, setting]));
    return settings.filter((setting) => {
      const counts = last.get(setting.name)!;
      if (counts === setting) return true;
      const family = findKey(setting.name, ['file'])?.name ?? '';
      // A server left out of the list by mistake would not be part of any quorum.
      if (quorumFamilies.includes(family) && counts.value !== setting.value) {
        throw new ConfigError(
          `${counts.where}: ${setting.name} has another value at ${setting.where}. Keep one of the lines; each server has a number of its own.`,
        );
      }
      this.#settings.warn(setting.where, `${setting.name} is set again at ${counts.where}; the last one applies.`);
      return false;
    });
  }

  #apply(key: ConfigKey, setting: Setting): void {
    checkSetting(key, setting);
    const { name, value, where } = setting;
    const isInert = value === '' || (key.inertValues?.includes(key.value === 'boolean' ? value.toLowerCase() : value) ?? false);
    switch (key.status) {
      case 'stops':
        if (isInert) return;
        throw new ConfigError(
          `${where}: ${name} asks for ${key.reason}, which this version does not support yet, and the server does not start with less protection than configured. Remove the setting to run without it.`,
        );
      case 'warns':
        if (!isInert)
          this.#settings.warn(where, `${name} asks for ${key.reason}, which this version does not support yet; it has no effect.`);
        return;
      case 'no effect':
        this.#settings.notice(where, name, key.reason!);
        return;
      case 'ensemble':
      case 'built': {
        if (key.status === 'ensemble') this.#settings.ensembleSettings.push(setting);
        if (quorumFamilies.includes(key.name)) {
          this.#settings.quorumLines.set(name, setting);
          return;
        }
        this.#settings.set(setting);
      }
    }
  }

  #unknown({ name, where }: Setting): void {
    const nearest = nearestKey(name);
    this.#settings.warn(where, `${name} is not a known key; it has no effect.${nearest === undefined ? '' : ` Did you mean ${nearest}?`}`);
  }

  applyDynamicFile(path: string): void {
    const where = this.#settings.where('dynamicConfigFile');
    const [line] = this.#settings.quorumLines.values();
    if (line !== undefined) throw new ConfigError(`${line.where}: ${line.name} must be in the dynamic file ${path}. Move the line there.`);
    let text: string;
    try {
      text = this.#settings.readFile(path);
    } catch (error) {
      throw new ConfigError(
        `${where}: the dynamic file ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`,
        { cause: error },
      );
    }
    for (const setting of this.#lastOfEach(parseProperties(text, path))) {
      if (setting.name === 'version') {
        throw new ConfigError(`${setting.where}: the version of a dynamic file is the end of its name. Remove the line.`);
      }
      const key = findKey(setting.name, ['file']);
      if (key === undefined || !quorumFamilies.includes(key.name)) {
        throw new ConfigError(
          `${setting.where}: a dynamic file holds server, group and weight lines only. Move ${setting.name} to zoo.cfg or remove it.`,
        );
      }
      this.#apply(key, setting);
    }
  }
}
