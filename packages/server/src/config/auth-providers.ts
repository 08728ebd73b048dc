/** The authentication providers that authProvider.* names by the classes of ZooKeeper. */
import type { AuthProvider, CoreOptions } from '@tskeeper/core';
import { saslProvider } from '@tskeeper/core/internal';
import { ConfigError } from './config-error.ts';
import type { ConfigSettings } from './config-settings.ts';
import { commaList } from './setting-values.ts';

const classPackage = 'org.apache.zookeeper.server.auth.';

const ensembleClass = `${classPackage}EnsembleAuthenticationProvider`;

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
  for (const { name, value, where } of settings.settingsOf('authProvider')) {
    switch (value) {
      case '':
      // These two are always there, unless DigestAuthenticationProvider.enabled is false.
      case `${classPackage}IPAuthenticationProvider`:
      case `${classPackage}DigestAuthenticationProvider`:
        break;
      case `${classPackage}SASLAuthenticationProvider`: {
        const anyUsersId = settings.text('letAnySaslUserDoX');
        providers.set('sasl', saslProvider(anyUsersId === '' ? undefined : anyUsersId));
        break;
      }
      // An option of the core (readEnsembleAuth).
      case ensembleClass:
        break;
      default:
        throw new ConfigError(
          `${where}: ${name} asks for the provider ${value}, which this version does not support yet, and the server does not start with less protection than configured. Remove the setting to run without it.`,
        );
    }
  }
  return [...providers.values()];
}
