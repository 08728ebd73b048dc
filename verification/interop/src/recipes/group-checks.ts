/** Groups whose members are of several kinds. */
import { type Check, until } from './check-context.ts';
import type { RecipeClientKind } from './recipe-client.ts';

interface GroupPair {
  readonly name: string;
  readonly theirs: 'kazoo' | 'Curator';
  /** Of theirs. */
  readonly recipe: string;
  /** Of ours. */
  readonly naming: string;
  /** What members say of themselves; without it nothing but the name. */
  readonly data?: string;
}

const groups: readonly GroupPair[] = [
  { name: "kazoo's Party", theirs: 'kazoo', recipe: 'party', naming: 'party' },
  { name: "kazoo's ShallowParty", theirs: 'kazoo', recipe: 'shallowParty', naming: 'shallowParty' },
  { name: "Curator's GroupMember", theirs: 'Curator', recipe: 'member', naming: 'plain', data: 'up' },
];

function groupCheck({ name, theirs, recipe, naming, data }: GroupPair): Check {
  const more = data === undefined ? [] : [data];
  const shown = (...ids: string[]) => ids.map((id) => (data === undefined ? id : `${id}=${data}`)).join(',');
  return {
    name: `${name} and a group of ours: each sees the other, until it leaves or is killed`,
    hasRoot: theirs === 'kazoo',
    async run(context) {
      const { clients, root } = context;
      const open = (kind: RecipeClientKind, id: string, peer = clients[kind]) =>
        kind === 'ours' ? peer.open('member', root, id, naming, ...more) : peer.open(recipe, root, id, ...more);
      const [anna, bert] = [await open('ours', 'anna'), await open(theirs, 'bert')];
      await anna.call('join');
      await bert.call('join');
      const seen = (ids: string) => async () => (await anna.call('members')) === ids && (await bert.call('members')) === ids;
      await until('each sees both', seen(shown('anna', 'bert')));
      for (const kind of ['ours', theirs] as const) {
        const mortal = await context.startClient(kind);
        const cleo = await open(kind, 'cleo', mortal);
        await cleo.call('join');
        await until('a third has joined', seen(shown('anna', 'bert', 'cleo')));
        await context.killClient(mortal);
        await until('the killed one is removed', seen(shown('anna', 'bert')));
      }
      await bert.call('leave');
      await until('one has left', async () => (await anna.call('members')) === shown('anna'));
      await anna.call('leave');
    },
  };
}

export const groupChecks: readonly Check[] = groups.map(groupCheck);
