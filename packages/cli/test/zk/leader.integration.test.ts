/** `leader` and `shed` with an ensemble: through a follower, and with and without permission. */
import { connect } from '@tskeeper/client';
import { TestEnsemble } from '@tskeeper/testing';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { zkAt } from '../support/zk.ts';

const zkOf =
  (connectString: string) =>
  (...argv: readonly string[]) =>
    zkAt(connectString, new FakeTerminal(), ...argv);

describe('A62: tskeeper leader', () => {
  it('prints who leads, and gives the lead to the named server or to the best one', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 3, config: { skipACL: 'yes' } });
    const { leader } = ensemble;
    const [through, target] = ensemble.followers;
    const zk = zkOf(through!.connectString);
    const epoch = through!.inspect.lastZxid() / 2 ** 32;
    expect((await zk('leader')).out).toBe(`Server ${leader.sid} leads in epoch ${Math.floor(epoch)}\n`);
    const { code, out, err } = await zk('leader', 'transfer', '-to', String(target!.sid));
    expect([code, out.replace(/\d+\n$/, ''), err]).toEqual([exitCodes.done, `Server ${target!.sid} leads in epoch `, '']);
    await ensemble.ready();
    expect(ensemble.leader).toBe(target);
    expect(await zk('leader', 'transfer', '-to', String(target!.sid))).toMatchObject({
      code: exitCodes.failed,
      err: `The lead was not given to server ${target!.sid}: it leads already.\n`,
    });
    expect(await zk('leader', 'transfer', '-to', '9')).toMatchObject({
      code: exitCodes.failed,
      err: 'The lead was not given to server 9: it has no vote, or a vote of weight 0.\n',
    });
    expect((await zk('-o', 'json', 'leader', 'transfer')).code).toBe(exitCodes.done);
    await ensemble.ready();
    expect(ensemble.leader).not.toBe(target);
    expect((await zk('leader', 'resign')).code).toBe(exitCodes.refused);
  });

  it('says who leads although its own session, a local one, ends with the role of its server', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 3, config: { skipACL: 'yes', localSessionsEnabled: true } });
    const [through, target] = ensemble.followers;
    const { code, out, err } = await zkOf(through!.connectString)('leader', 'transfer', '-to', String(target!.sid));
    expect([code, out.replace(/\d+\n$/, ''), err]).toEqual([exitCodes.done, `Server ${target!.sid} leads in epoch `, '']);
    await ensemble.ready();
    expect(ensemble.leader).toBe(target);
  });

  it('needs the permission to write /zookeeper/config', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 3 });
    const { leader } = ensemble;
    const zk = zkOf(ensemble.followers[0]!.connectString);
    expect(await zk('leader', 'transfer')).toMatchObject({ out: '', err: 'Insufficient permission : /zookeeper/config\n' });
    expect(await zk('shed', '50')).toMatchObject({ out: '', err: 'Insufficient permission : /zookeeper/config\n' });
    expect(ensemble.leader).toBe(leader);
  });
});

describe('D16: tskeeper shed', () => {
  it('closes a share of the connections of one server, whose clients go elsewhere with their sessions', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 3, config: { skipACL: 'yes' } });
    const [full] = ensemble.followers;
    const clients = await Promise.all(Array.from({ length: 30 }, () => connect(ensemble.connectString, { sessionTimeoutMs: 20_000 })));
    const sessions = clients.map(({ sessionId }) => sessionId);
    const before = full!.inspect.cnxnCount();
    const { out } = await zkOf(full!.connectString)('-o', 'json', 'shed', '100');
    expect(JSON.parse(out)).toMatchObject({ connections: before });
    await Promise.all(clients.map((client) => client.sync('/').catch(() => client.sync('/'))));
    await ensemble.until(() => ensemble.servers.reduce((count, { inspect }) => count + inspect.cnxnCount(), 0) >= 30);
    expect(clients.map(({ sessionId }) => sessionId)).toEqual(sessions);
    await Promise.all(clients.map((client) => client.close()));
  });
});
