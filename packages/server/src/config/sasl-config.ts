/**
 * SASL at the client port: the section of the JAAS file that -Djava.security.auth.login.config
 * names, and the keys around it.
 */
import type { CoreOptions } from '@tskeeper/core';
import { AuthToLocal, SaslNames } from '@tskeeper/core/internal';
import { ConfigError } from './config-error.ts';
import type { ConfigSettings } from './config-settings.ts';
import { type JaasModule, parseJaas } from './jaas-file.ts';

const fileKey = 'java.security.auth.login.config';
const sectionKey = 'sasl.serverconfig';
const digestModule = 'org.apache.zookeeper.server.auth.DigestLoginModule';
const kerberosModules: readonly string[] = ['com.sun.security.auth.module.Krb5LoginModule', 'com.ibm.security.auth.module.Krb5LoginModule'];
const userOption = 'user_';
const superUser = 'super';

/** Undefined if no JAAS section is for the clients of this server. */
export function readSasl(settings: ConfigSettings): CoreOptions['sasl'] {
  const module = serverModule(settings);
  if (module === undefined) {
    for (const { name, where } of settings.settingsOf('superUser')) settings.notice(where, name, 'no client can authenticate by SASL');
    return undefined;
  }
  const { className, options, where } = module;
  if (kerberosModules.includes(className)) {
    throw new ConfigError(
      `${where}: ${className} asks for Kerberos, which this version does not support yet. Use ${digestModule}, or remove the section.`,
    );
  }
  if (className !== digestModule) {
    throw new ConfigError(`${where}: ${className} is not a known login module. Use ${digestModule}.`);
  }
  return { mechanism: 'DIGEST-MD5', passwords: passwordsOf(options, where, settings), names: saslNames(settings) };
}

function passwordsOf(options: JaasModule['options'], where: string, settings: ConfigSettings): ReadonlyMap<string, string> {
  const passwords = new Map<string, string>();
  for (const [option, value] of options) if (option.startsWith(userOption)) passwords.set(option.slice(userOption.length), value);
  const superPassword = settings.text('SASLAuthenticationProvider.superPassword');
  // Only a user of the section can be super: the property replaces its password.
  if (superPassword !== '' && passwords.has(superUser)) passwords.set(superUser, superPassword);
  if (passwords.size === 0) {
    throw new ConfigError(`${where}: the section names no user, so no client could authenticate. Add user_<name>="<password>".`);
  }
  return passwords;
}

/** The first module of the section, as in ZooKeeper. */
function serverModule(settings: ConfigSettings): JaasModule | undefined {
  const file = settings.text(fileKey);
  const section = settings.text(sectionKey);
  if (file === '') {
    if (settings.isSet(sectionKey)) {
      throw new ConfigError(
        `${settings.where(sectionKey)}: ${sectionKey} names the section ${section} of a JAAS file, and no file is given. Pass -D${fileKey}=<file>.`,
      );
    }
    return undefined;
  }
  const sections = parseJaas(readJaasFile(file, settings), file, settings.javaProperties);
  const [module] = sections.get(section) ?? [];
  if (module !== undefined) return module;
  const found = sections.size === 0 ? 'no section' : `the sections ${[...sections.keys()].join(', ')}`;
  if (settings.isSet(sectionKey)) {
    throw new ConfigError(
      `${settings.where(sectionKey)}: ${sectionKey} names the section ${section}, and ${file} has ${found}. Correct the name, or add the section.`,
    );
  }
  settings.warn(settings.where(fileKey), `${file} has ${found} and none called ${section}: clients cannot authenticate by SASL.`);
  return undefined;
}

function readJaasFile(file: string, settings: ConfigSettings): string {
  try {
    return settings.readFile(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new ConfigError(`${settings.where(fileKey)}: the JAAS file ${file} cannot be read (${code}).`, { cause: error });
  }
}

function saslNames(settings: ConfigSettings): SaslNames {
  const superUsers = settings.settingsOf('superUser').map(({ value }) => value);
  return new SaslNames({
    rules: authToLocal(settings),
    removesHost: settings.boolean('kerberos.removeHostFromPrincipal'),
    removesRealm: settings.boolean('kerberos.removeRealmFromPrincipal'),
    superUsers: new Set(superUsers.filter((id) => id !== '')),
  });
}

function authToLocal(settings: ConfigSettings): AuthToLocal {
  const key = 'security.auth_to_local';
  const realm = defaultRealm(settings);
  try {
    return new AuthToLocal(settings.text(key), realm);
  } catch (cause) {
    throw new ConfigError(`${settings.where(key)}: ${(cause as Error).message}. Correct ${key}.`, { cause });
  }
}

/** The realm whose names the rule DEFAULT shortens; empty if krb5.conf names none. */
function defaultRealm(settings: ConfigSettings): string {
  const requiredBy = 'requireKerberosConfig';
  const given = settings.text('java.security.krb5.realm');
  if (given !== '') return given;
  const file = settings.text('java.security.krb5.conf');
  let text = '';
  try {
    text = settings.readFile(file, 'utf8');
  } catch (error) {
    if (!settings.boolean(requiredBy)) return '';
    throw new ConfigError(
      `${settings.where(requiredBy)}: ${requiredBy} is true, and ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`,
      { cause: error },
    );
  }
  const realm = /^\s*default_realm\s*=\s*(\S+)/m.exec(text)?.[1];
  if (realm === undefined && settings.boolean(requiredBy)) {
    throw new ConfigError(`${settings.where(requiredBy)}: ${requiredBy} is true, and ${file} has no line default_realm = <realm>. Add it.`);
  }
  return realm ?? '';
}
