/** Groups whose members are of several kinds. */
import { type Check, until } from './ground.ts';
import type { PeerKind } from './peer.ts';

interface Agreement {
  readonly name: string;
  readonly theirs: 'kazoo' | 'Curator';
  /** Of theirs. */
  readonly recipe: string;
  /** Of ours. */
  readonly naming: string;
  /** What members say of themselves; without it nothing but the name. */
  readonly data?: string;
}

const groups: readonly Agreement[] = [
  { name: "kazoo's Party", theirs: 'kazoo', recipe: 'party', naming: 'party' },
  { name: "kazoo's ShallowParty", theirs: 'kazoo', recipe: 'shallowParty', naming: 'shallowParty' },
  { name: "Curator's GroupMember", theirs: 'Curator', recipe: 'member', naming: 'plain', data: 'up' },
];

function groupCheck({ name, theirs, recipe, naming, data }: Agreement): Check {
  const more = data === undefined ? [] : [data];
  const shown = (...ids: string[]) => ids.map((id) => (data === undefined ? id : `${id}=${data}`)).join(',');
  return {
    name: `${name} and a group of ours: each sees the other, until it leaves or is killed`,
    hasRoot: theirs === 'kazoo',
    async run(ground) {
      const { peers, root } = ground;
      const open = (kind: PeerKind, id: string, peer = peers[kind]) =>
        kind === 'ours' ? peer.open('member', root, id, naming, ...more) : peer.open(recipe, root, id, ...more);
      const [anna, bert] = [await open('ours', 'anna'), await open(theirs, 'bert')];
      await anna.tell('join');
      await bert.tell('join');
      const seen = (ids: string) => async () => (await anna.tell('members')) === ids && (await bert.tell('members')) === ids;
      await until('each sees both', seen(shown('anna', 'bert')));
      for (const kind of ['ours', theirs] as const) {
        const mortal = await ground.another(kind);
        const cleo = await open(kind, 'cleo', mortal);
        await cleo.tell('join');
        await until('a third has joined', seen(shown('anna', 'bert', 'cleo')));
        await ground.kill(mortal);
        await until('the killed one is removed', seen(shown('anna', 'bert')));
      }
      await bert.tell('leave');
      await until('one has left', async () => (await anna.tell('members')) === shown('anna'));
      await anna.tell('leave');
    },
  };
}

export const groupChecks: readonly Check[] = groups.map(groupCheck);
