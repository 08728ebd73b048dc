/** Mutants of the membership that changes while an ensemble runs. */
import type { Detector, Mutant } from './mutant.ts';

const seeded: Readonly<Record<string, Omit<Mutant, 'detector'>>> = {
  'joint-quorum-of-the-old-only': {
    description: 'while a configuration is pending, a quorum of the active one alone decides',
    origin: 'P32',
    symbol: 'JointQuorum.containsQuorum',
    original: ' && this.#lastSeen.containsQuorum(sids)',
    replacement: '',
  },
  'oracle-decides-among-three': {
    description: 'the oracle decides for one of three voters as well',
    origin: 'A57, P32',
    symbol: 'OracleQuorum.#canBeAlone',
    original: 'this.voters.length === 2',
    replacement: 'this.voters.length <= 3',
  },
  'oracle-silence-ignored': {
    description: 'once the oracle has allowed a server to continue alone, the server does so for good',
    origin: 'A57, P32',
    symbol: 'OracleQuorum.oracleAnswered',
    original: 'this.#canServeAlone = canServeAlone;',
    replacement: 'this.#canServeAlone ||= canServeAlone;',
  },
  'two-voters-announced-by-one-ignored': {
    description: 'a server outside two voters with an oracle waits until both have announced their configuration',
    origin: 'A57, P35',
    symbol: 'ConfigAnnouncements.latestConfirmed',
    original: 'isSame || mayBeAlone || ',
    replacement: 'isSame || ',
  },
  'configuration-of-uptodate-not-used': {
    description: 'a learner does not use the configuration that NEWLEADER has brought',
    origin: 'P32',
    symbol: 'Learner.#onUpToDate',
    original: 'this.#activateLeaderConfig(now);',
    replacement: '',
  },
  'configuration-seen-again': {
    description: 'the active configuration counts as a pending one when a leader sends it again',
    origin: 'P32',
    symbol: 'Configuration.#maybeSee',
    original: 'config.version <= (this.#lastSeen?.members.version ?? this.version)',
    replacement: 'config.version < (this.#lastSeen?.members.version ?? this.version)',
  },
  'removed-servers-count-on': {
    description: 'after a reconfiguration a quorum of the earlier configuration is still needed',
    origin: 'P32, P35',
    symbol: 'Configuration.#updateQuorum',
    original: 'this.#quorum.replace(this.#reported === undefined ? own : new ReportedQuorum(own, this.#reported.verifier));',
    replacement: 'if (own !== verifier || this.#quorum.voters.length === 0) this.#quorum.replace(own);',
  },
  'pending-configuration-announced-as-active': {
    description: 'a server that looks for a leader takes what others have in their logs for committed',
    origin: 'P32',
    symbol: 'FastLeaderElection.#noteConfigs',
    original: 'newerConfig(config, this.#config)',
    replacement: 'newerConfig(pendingConfig ?? config, this.#config)',
  },
  'strangers-announce-a-configuration': {
    description: 'servers outside the configuration are enough to announce another one',
    origin: 'F24, F30',
    symbol: 'ConfigAnnouncements.latestConfirmed',
    original: ' && [...announcers].some(isKnown)',
    replacement: '',
  },
  'reconfiguration-while-one-is-pending': {
    description: 'a second reconfiguration begins before the first is committed',
    origin: 'P32',
    symbol: 'Configuration.prepareReconfig',
    original: 'if (this.#lastSeen !== undefined) return ErrorCode.ReconfigInProgress;',
    replacement: '',
  },
  'reconfiguration-of-a-stale-version': {
    description: 'a reconfig that names an earlier version is carried out',
    origin: 'A58',
    symbol: 'Configuration.prepareReconfig',
    original: 'request.curConfigId !== this.version',
    replacement: 'request.curConfigId > this.version',
  },
  'reconfiguration-by-anyone': {
    description: 'a client that may only read the configuration can change it',
    origin: 'A58',
    symbol: 'WriteValidator.checkMayReconfigure',
    original: 'this.#lacksPermission(Perms.write, znode, origin)',
    replacement: 'this.#lacksPermission(Perms.read, znode, origin)',
  },
  'truncated-configuration-stays': {
    description: 'a configuration that TRUNC has taken from the log stays pending',
    origin: 'P32',
    symbol: 'PeerState.replaceReplica',
    original: 'if (this.config.readFrom(replica.tree)) this.#configChanged(now);',
    replacement: '',
  },
  'restart-forgets-the-pending-configuration': {
    description: 'a server that starts does not look for a later configuration in its log',
    origin: 'P32',
    symbol: 'PeerState.constructor',
    original: 'if (this.config.readFrom(this.replica.tree)) {',
    replacement: 'if (false) {',
  },
  'learner-keeps-its-role': {
    description: 'a learner that the new configuration gives another role keeps the old one',
    origin: 'F24',
    symbol: 'Learner.#activateConfig',
    original: '} else if (isRoleChanged) {',
    replacement: '} else if (isRoleChanged && isFollowed && false) {',
  },
  'observer-activates-before-the-txn': {
    description: 'an observer commits a reconfiguration before it has the txn',
    origin: 'P32',
    symbol: 'Learner.#handlePacket',
    original: 'this.#onProposal(packet, now);\n        return this.#onActivate(packet.zxid, designated, now);',
    replacement: 'this.#onActivate(packet.zxid, designated, now);\n        return this.#onProposal(packet, now);',
  },
  'moved-servers-not-found': {
    description: 'learners go on to dial the addresses that servers had at the start',
    origin: 'F24',
    symbol: 'MembershipPorts.changed',
    original: 'learnerPort.setServers(servers);',
    replacement: '',
  },
  'moved-server-listens-at-its-old-port': {
    description: 'a server whose election port has changed still listens only at the old one',
    origin: 'F24',
    symbol: 'MembershipPorts.changed',
    original: 'this.#relistening = this.#relistening.then(() => this.#followElectionAddresses());',
    replacement: '',
  },
  'removed-server-without-address': {
    description: 'a server that was removed introduces itself without an address, so no server accepts its connections',
    origin: 'F24',
    symbol: 'ElectionLinkTable.#applyServers',
    original: 'for (const { sid, electionAddresses } of servers) {',
    replacement: 'this.#ownAddresses = [];\n    for (const { sid, electionAddresses } of servers) {',
  },
  'learned-pending-configuration-by-commit-only': {
    description: 'a follower learns of a configuration with its commit, and counts by the old one until then',
    origin: 'P32',
    symbol: 'Learner.#onProposal',
    original: 'if (!this.#acceptsConfig(text, now)) return;\n      ',
    replacement: '',
  },
  'new-voters-not-in-step': {
    description: 'a reconfiguration begins although no quorum of the new servers is in step',
    origin: 'A58, F24',
    symbol: 'Configuration.prepareReconfig',
    original: 'return hasQuorum(versioned.verifier) ? next : ErrorCode.NewConfigNoQuorum;',
    replacement: 'return next;',
  },
};

/** What the explorer reaches within a few thousand states. */
const explored: Readonly<Record<string, Omit<Mutant, 'detector'>>> = {
  'joint-quorum-of-the-new-only': {
    description: 'while a configuration is pending, a quorum of it alone decides',
    origin: 'P32',
    symbol: 'JointQuorum.containsQuorum',
    original: 'this.#current.containsQuorum(sids) && ',
    replacement: '',
  },
  'configuration-active-when-proposed': {
    description: 'a follower uses a configuration from its proposal on',
    origin: 'P32',
    symbol: 'Learner.#onProposal',
    original: 'this.#lastReconfig = { zxid, text };',
    replacement: 'this.#lastReconfig = { zxid, text };\n      this.#host.configActivated(text, true, now);',
  },
  'pending-configuration-not-completed': {
    description: 'a new leader sends NEWLEADER with its active configuration, although its log has a later one',
    origin: 'P32',
    symbol: 'Configuration.newLeaderConfig',
    original: 'if (this.#lastSeen !== undefined) return this.#lastSeen.text;',
    replacement: '',
  },
  'removed-leader-goes-on': {
    description: 'a leader goes on although the new configuration has no place for it',
    origin: 'F24',
    symbol: 'Broadcast.#commitReconfig',
    original: 'const leads = canLeadOn(this.#sid, before, config.members);',
    replacement: 'const leads = canLeadOn(this.#sid, before, before);',
  },
  'larger-sid-of-a-pending-configuration': {
    description: 'a voter of a pending configuration alone is preferred to one of the active configuration',
    origin: 'found here: joiner preferred; P35',
    symbol: 'isBetterVote',
    original: 'if (isActive !== verifier.active.weight(b.leader) > 0) return isActive;',
    replacement: '',
  },
  'pending-configuration-keeps-outside': {
    description: 'a server with a pending configuration follows only a leader that a quorum of both follows',
    origin: 'found here: kept outside; P35',
    symbol: 'FastLeaderElection.#onOutOfElection',
    original: 'notification.leader === this.#sid ? verifier : verifier.active',
    replacement: 'verifier',
  },
  'lost-configuration-stays-in-its-file': {
    description: 'a configuration whose txn a crash has taken from the log stays in its file',
    origin: 'found here: lost configuration; F24',
    symbol: 'PeerState.constructor',
    original: 'this.disk.saveConfig(this.config.members, this.config.lastSeen);\n      this.#publishMembers();',
    replacement: 'this.#publishMembers();',
  },
};

const files: Readonly<Record<string, Omit<Mutant, 'detector'>>> = {
  'zoo-cfg-names-a-missing-file': {
    description: 'zoo.cfg names the dynamic file before that is complete',
    origin: 'F24',
    symbol: 'ConfigFiles.#saveActive',
    original: 'await this.#replace(dynamicName, dynamicText(active));\n',
    replacement: 'setImmediate(() => void this.#replace(dynamicName, dynamicText(active)));\n',
  },
  'next-configuration-removed-first': {
    description: 'the file of the configuration that becomes active is removed before zoo.cfg names the new one',
    origin: 'F24',
    symbol: 'ConfigFiles.save',
    original:
      'if (active.version > this.#storedVersion) await this.#saveActive(active, ownSid);\n      const next = `${this.#name}.dynamic.next`;',
    replacement:
      'const next = `${this.#name}.dynamic.next`;\n      if (lastSeen === undefined && this.#hasNext) await this.#remove(next);\n      if (active.version > this.#storedVersion) await this.#saveActive(active, ownSid);',
  },
  'configuration-taken-back-stays-in-its-file': {
    description: 'the file of a configuration that is not pending any more stays',
    origin: 'F24',
    symbol: 'ConfigFiles.save',
    original: 'else if (this.#hasNext) await this.#remove(next);',
    replacement: 'else if (this.#hasNext && active.version > this.#storedVersion) await this.#remove(next);',
  },
  'stale-dynamic-file-name': {
    description: 'zoo.cfg goes on to name the dynamic file of the first version',
    origin: 'F24',
    symbol: 'ConfigFiles.#saveActive',
    original: '`${this.#name}.dynamic.${active.version.toString(16)}`',
    replacement: '`${this.#name}.dynamic.${(this.#storedVersion || active.version).toString(16)}`',
  },
};

function detectedBy(detector: Detector, group: Readonly<Record<string, Omit<Mutant, 'detector'>>>): Record<string, Mutant> {
  return Object.fromEntries(Object.entries(group).map(([name, mutant]) => [name, { detector, ...mutant }]));
}

export const reconfigMutants: Readonly<Record<string, Mutant>> = {
  ...detectedBy('reconfigs', seeded),
  ...detectedBy('explorer', explored),
  ...detectedBy('crash-states', files),
};
