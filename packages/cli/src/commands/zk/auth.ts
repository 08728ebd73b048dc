import { argumentsOf, type ZkCommand } from '../../zk/command.ts';

export const addAuth: ZkCommand = {
  name: 'addauth',
  usage: 'scheme auth',
  summary: 'authenticate: digest user:password',
  options: [],
  argumentsMax: 2,
  jsonShape: '{"scheme": "digest"}',
  async run(call) {
    const [scheme = '', auth = ''] = argumentsOf(call, 1);
    const client = await call.client();
    await client.addAuth(scheme, auth);
    await call.answer(undefined, { scheme });
  },
};

export const whoAmI: ZkCommand = {
  name: 'whoami',
  usage: '',
  summary: 'print the identities of this connection',
  options: [],
  argumentsMax: 0,
  jsonShape: '{"identities": [{"scheme": "ip", "user": "127.0.0.1"}]}',
  async run(call) {
    const client = await call.client();
    const identities = (await client.whoAmI(call.options)).map(({ authScheme, user }) => ({ scheme: authScheme, user }));
    const lines = identities.map(({ scheme, user }) => `${scheme}: ${user}`);
    await call.answer(['Auth scheme: User', ...lines].join('\n'), { identities });
  },
};
