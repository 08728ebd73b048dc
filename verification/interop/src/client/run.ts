/** Runs the checks of our client against one server. */
import { type Client, connect, type ConnectOptions } from '@tskeeper/client';

import { type ServerProcess } from '@tskeeper/harness';
import type { DriverFacts } from '../drivers/driver.ts';
import type { Report } from '../report.ts';
import { callsChecks } from './calls-checks.ts';
import { checks, type CheckContext } from './checks.ts';
import { guideChecks } from './guide-checks.ts';
import { loopChecks } from './loop-checks.ts';
import { clientCacheChecks } from './cache-checks.ts';
import { Proxy } from './proxy.ts';

/** For all checks of one server; each has its own znode below. */
const folder = '/client-checks';

export async function runClient(server: ServerProcess, facts: DriverFacts, report: Report): Promise<void> {
  const admin = await connect(server.connectString);
  await admin.create(folder);
  let number = 0;
  for (const { name, run } of [...checks, ...callsChecks, ...loopChecks, ...clientCacheChecks, ...guideChecks]) {
    const title = `client on ${server.kind}: ${name}`;
    const clients: Client[] = [];
    const opened = async (opening: Promise<Client>): Promise<Client> => {
      const client = await opening;
      clients.push(client);
      return client;
    };
    const proxy = await Proxy.to(server.port);
    const root = `${folder}/c${number++}`;
    const context: CheckContext = {
      facts,
      root,
      proxy,
      open: (options: ConnectOptions = {}, chroot = '') => opened(connect(server.connectString + chroot, options)),
      openThroughProxy: (options: ConnectOptions = {}) => opened(connect(proxy.connectString, options)),
    };
    try {
      await admin.create(root);
      await run(context);
      report.pass(title);
    } catch (error) {
      report.fail(title, error instanceof Error ? (error.stack ?? error.message) : String(error));
    } finally {
      await Promise.all(clients.map((client) => client.close()));
      await proxy.close();
    }
  }
  await admin.close();
}
