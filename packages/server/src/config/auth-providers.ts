/** The authentication providers that authProvider.* names: classes of ZooKeeper, or modules. */
import type { AuthProvider, CoreOptions } from '@tskeeper/core';
import { saslProvider } from '@tskeeper/core/internal';
import { type AuthPlugin, PluginProvider } from '../auth-plugin.ts';
import { ConfigError } from './config-error.ts';
import type { ConfigSettings } from './config-settings.ts';
import { commaList } from './setting-values.ts';
import type { Setting } from './settings.ts';

const classPackage = 'org.apache.zookeeper.server.auth.';
const ensembleClass = `${classPackage}EnsembleAuthenticationProvider`;
/** `org.example.Provider`, but not `./provider.js` or a package of npm. */
const javaClass = /^(?:[a-z_]\w*\.)+[A-Z]\w*$/;
/** Their meaning is fixed. */
const reservedSchemes: readonly string[] = ['world', 'auth', 'super', 'sasl'];

/** Whether clients may name the ensemble that they mean, and which names are right. */
export function readEnsembleAuth(settings: ConfigSettings): CoreOptions['ensembleAuth'] {
  const key = 'ensembleAuthName';
  if (!settings.settingsOf('authProvider').some(({ value }) => value === ensembleClass)) {
    if (settings.isSet(key)) settings.notice(settings.where(key), key, `no authProvider.* names ${ensembleClass}`);
    return undefined;
  }
  return { names: settings.isSet(key) ? commaList(settings.text(key)) : undefined };
}

/** Providers in addition to `ip` and `digest`, one for each scheme. */
export function readAuthProviders(settings: ConfigSettings): readonly AuthProvider[] {
  const providers = new Map<string, AuthProvider>();
  for (const setting of settings.settingsOf('authProvider')) {
    const provider = providerOf(setting, settings);
    if (provider === undefined) continue;
    const { scheme } = provider;
    if (providers.has(scheme)) {
      throw new ConfigError(`${setting.where}: ${setting.name} names a second provider of the scheme ${scheme}. Remove one of them.`);
    }
    providers.set(scheme, provider);
  }
  return [...providers.values()];
}

/** Undefined if it is there without this setting. */
function providerOf(setting: Setting, settings: ConfigSettings): AuthProvider | undefined {
  const { name, value, where } = setting;
  switch (value) {
    case '':
    // These two are always there, unless DigestAuthenticationProvider.enabled is false.
    case `${classPackage}IPAuthenticationProvider`:
    case `${classPackage}DigestAuthenticationProvider`:
    // An option of the core (readEnsembleAuth).
    case ensembleClass:
      return undefined;
    case `${classPackage}SASLAuthenticationProvider`: {
      const anyUsersId = settings.text('letAnySaslUserDoX');
      return saslProvider(anyUsersId === '' ? undefined : anyUsersId);
    }
    default:
      if (!javaClass.test(value)) return new PluginProvider(loadPlugin(setting, settings));
      throw new ConfigError(
        `${where}: ${name} asks for the provider ${value}, which this version does not support yet, and the server does not start with less protection than configured. Remove the setting to run without it.`,
      );
  }
}

function loadPlugin(setting: Setting, settings: ConfigSettings): AuthPlugin {
  const { name, value, where } = setting;
  const fail = (what: string, cause?: unknown): never => {
    throw new ConfigError(`${where}: ${name} names the module ${value}, ${what}.`, { cause });
  };
  let plugin: unknown;
  try {
    const loaded = settings.loadModule(value) as { readonly default?: unknown } | undefined;
    const exported = loaded?.default ?? loaded;
    plugin = typeof exported === 'function' ? (exported as () => unknown)() : exported;
  } catch (error) {
    fail(`which cannot be loaded: ${error instanceof Error ? error.message.split('\n')[0]! : String(error)}`, error);
  }
  const complaint = complaintAbout(plugin);
  if (complaint !== undefined) fail(`whose default export is not an authentication provider: ${complaint}`);
  return plugin as AuthPlugin;
}

/** What is wrong with a plug-in; undefined if nothing is. */
function complaintAbout(plugin: unknown): string | undefined {
  if (typeof plugin !== 'object' || plugin === null) return `it is of the type ${plugin === null ? 'null' : typeof plugin}`;
  const { scheme, authenticate, isValidId, matches, userName } = plugin as Partial<Record<keyof AuthPlugin, unknown>>;
  if (typeof scheme !== 'string' || !/^[\w.-]+$/.test(scheme)) return 'scheme is not a word';
  if (reservedSchemes.includes(scheme)) return `the scheme ${scheme} has a fixed meaning`;
  if (typeof authenticate !== 'function') return 'authenticate is not a function';
  if (typeof isValidId !== 'function') return 'isValidId is not a function';
  if (matches !== undefined && typeof matches !== 'function') return 'matches is not a function';
  if (userName !== undefined && typeof userName !== 'function') return 'userName is not a function';
  return undefined;
}
