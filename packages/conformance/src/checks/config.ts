/** The configuration of the ensemble. */
import { NotApplicable, type RunnableCheck } from '../check.ts';
import { expectEqual, expectThat, expectError, textOf } from '../expect.ts';

const docs = 'Dynamic Reconfiguration of the ZooKeeper Ensemble';

/** A version that no configuration has, so that the request cannot change anything. */
const absentConfigVersion = 0x7fff_ffff_ffffn;

export const configChecks: readonly RunnableCheck[] = [
  {
    name: 'config.read',
    title: 'getConfig returns the servers of an ensemble and the version, or nothing on a standalone server',
    behaviourIds: ['B49'],
    docs: `${docs}, Retrieving the current dynamic configuration`,
    async run(context) {
      const zk = await context.openClient();
      const config = textOf((await zk.getConfig()).data) ?? '';
      if (context.facts.servers[0]!.mode === 'standalone') {
        expectEqual('the configuration', config, '');
        return;
      }
      expectThat('the configuration', /^server\.\d+=/m.test(config), 'a line server.N=...', config);
      expectThat('the last line', /\nversion=[0-9a-f]+$/.test(config), 'version= and a number', config.split('\n').at(-1));
    },
  },
  {
    name: 'config.below-a-chroot',
    title: 'getConfig returns the same below a chroot',
    behaviourIds: ['B49', 'C2-4'],
    docs: 'ZooKeeper.getConfig',
    async run(context) {
      const [zk, inside] = [await context.openClient(), await context.openClient({ chroot: context.rootPath })];
      expectEqual('the configuration', textOf((await inside.getConfig()).data), textOf((await zk.getConfig()).data));
    },
  },
  {
    name: 'config.reconfig-refused',
    title: 'reconfig fails with ReconfigDisabled if it is off, else with BadVersion for a version that is not the current one',
    behaviourIds: ['B49'],
    docs: `${docs}; Administrator's Guide, reconfigEnabled`,
    async run(context) {
      const zk = await context.openClient();
      const before = textOf((await zk.getConfig()).data);
      // Unimplemented if reconfig is on and there is no ensemble.
      const codes =
        context.facts.servers[0]!.mode === 'standalone'
          ? (['ReconfigDisabled', 'Unimplemented'] as const)
          : (['ReconfigDisabled', 'BadVersion'] as const);
      await expectError('reconfig', zk.reconfig({ leavingServers: [250], fromConfig: absentConfigVersion }), ...codes);
      expectEqual('the configuration', textOf((await zk.getConfig()).data), before);
    },
  },
  {
    name: 'config.reconfig',
    title: 'reconfig by the super user writes a configuration with a new version and fires its watches',
    behaviourIds: ['B49'],
    docs,
    needs: ['ensemble', 'super', 'reconfig'],
    async run(context) {
      const zk = await context.openClient({ auth: [{ scheme: 'digest', auth: context.superAuth! }] });
      const events: string[] = [];
      const before = textOf((await zk.getConfig({ watch: ({ type, path }) => void events.push(`${type} ${path}`) })).data) ?? '';
      const members = before.split('\n').filter((line) => line.startsWith('server.'));
      let after: string;
      try {
        after = textOf((await zk.reconfig({ joiningServers: members[0]! })).data) ?? '';
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ReconfigDisabled') {
          throw new NotApplicable('reconfigEnabled is off: the server answers ReconfigDisabled');
        }
        throw error;
      }
      expectEqual(
        'the members',
        after
          .split('\n')
          .filter((line) => line.startsWith('server.'))
          .toSorted(),
        members.toSorted(),
      );
      const version = (text: string) => BigInt(`0x${/version=([0-9a-f]+)$/.exec(text)?.[1] ?? '0'}`);
      expectThat('the version', version(after) > version(before), `above ${version(before)}`, version(after));
      expectEqual('events', events.slice(0, 1), ['NodeDataChanged /zookeeper/config']);
    },
  },
];
