/**
 * Which seeds of an ensemble change its membership, and how. The plan is drawn apart from the rest
 * of a seed, so that the seeds without it stay as they are.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { digestId } from '../model/access-rules.ts';
import { superCredentials } from '../clients/reconfigurer.ts';
import { withEndedSessions, withObserverFaults } from './faults-apart.ts';
import { diskLosingFaults, drawPlan, type EnsemblePlan, type ReconfigPlan, type SeedPlan } from './swarm.ts';

/** One of so many ensembles changes its membership; of the few that have an oracle more. */
const oneIn = 4;
const oneInWithOracle = 2;
const serversMax = 7;

/** Make the random numbers of these plans others than those of the rest. */
const salt = 0x3c6ef372;
const observerSalt = 0x51ed270b;
const endedSessionSalt = 0x1f83d9ab;

/** What a seed does. */
export function planOf(seed: number, random: SeededRandom = new SeededRandom(seed)): SeedPlan {
  const drawn = withObserverFaults(drawPlan(random), new SeededRandom(seed ^ observerSalt));
  const plan = withEndedSessions(drawn, new SeededRandom(seed ^ endedSessionSalt));
  return withReconfigs(plan, new SeededRandom(seed ^ salt));
}

/** Returns the plan with reconfigurations, or as it is. */
function withReconfigs(plan: SeedPlan, random: SeededRandom): SeedPlan {
  const { ensemble, flood, faults, servers } = plan;
  if (ensemble === undefined || random.below(ensemble.oracleSid === undefined ? oneIn : oneInWithOracle) > 0) return plan;
  // An impersonator may announce any configuration as a voter.
  if (flood !== undefined || faults.includes('impersonator')) return plan;
  const {
    observers,
    options: { observerMasterPort },
  } = ensemble;
  const reconfig: ReconfigPlan = {
    joiners: Math.max(0, Math.min(random.below(4), serversMax - servers)),
    // A lone voter has no follower, from which observers could learn.
    standaloneEnabled: (servers - observers > 1 && random.below(2) === 0) || (observers > 0 && observerMasterPort !== undefined),
    intervalMs: 60 + random.below(500),
    // A client at a read-only server looks for another less and less often, and the list has each port.
    movesClientPorts: random.below(3) === 0 && ensemble.options.readOnlyMode !== true,
    // The first address of a server with several may be dead, and is the one that clients use.
    clientsFollow: random.below(2) === 0 && ensemble.deadAddress === undefined,
  };
  // The oracle may favour a server that gets a vote later, or never.
  const oracleSid =
    ensemble.oracleSid !== undefined && random.below(4) === 0 ? 1 + random.below(servers + reconfig.joiners) : ensemble.oracleSid;
  return {
    ...withVotesOfEmptyFolders(plan),
    servers: servers + reconfig.joiners,
    reconfig,
    ensemble: { ...reconfigurable(ensemble, reconfig), oracleSid },
    // The operator's connection takes a place, and every other client has to find one as well.
    options: {
      ...withVotesOfEmptyFolders(plan).options,
      ...((plan.options.maxCnxns ?? 0) > 0 && { maxCnxns: plan.options.maxCnxns! + 1 }),
    },
    core: { ...plan.core, reconfigEnabled: true, superDigest: digestId(superCredentials) },
  };
}

/**
 * The folder of an observer without a log may be empty. A reconfiguration may need its vote before it
 * has data, and with db.autocreate=false an empty folder has none.
 */
function withVotesOfEmptyFolders(plan: SeedPlan): SeedPlan {
  if (plan.ensemble?.options.syncEnabled !== false) return plan;
  const { dbAutocreate: _, ...options } = plan.options;
  return { ...plan, faults: plan.faults.filter((name) => !diskLosingFaults.includes(name)), options };
}

/** Servers outside the configuration need places: those that join, and those that were removed. */
function reconfigurable(ensemble: EnsemblePlan, { joiners, standaloneEnabled }: ReconfigPlan): EnsemblePlan {
  const { unknownObserversMax: _, ...zab } = ensemble.zab;
  const { electionPort: _election, learnerPort: { halfOpenMax: _half, ...learnerPort } = {}, ...options } = ensemble.options;
  return { ...ensemble, joiners, zab, options: { ...options, learnerPort, standaloneEnabled } };
}
