/**
 * Asks a server whether it is part of a quorum, with the four letter word `isro` on a separate
 * connection: it answers `rw` or `ro`. No answer within a second counts as no.
 */
import { uniform } from '../clock.ts';
import type { ServerAddress } from '../transport.ts';
import { CnxnAttempt } from './cnxn-attempt.ts';
import type { MachineDriver } from './machine-driver.ts';
import type { ProbeOutput } from './quorum-probe.ts';
import type { SessionEnvironment } from './session-environment.ts';

/** As in ZooKeeper's client. */
const probeTimeoutMs = 1000;
/** `rw` or `ro`, and a newline. */
const probeAnswerBytes = 3;

export class IsroProbe implements ProbeOutput {
  readonly #environment: SessionEnvironment;
  readonly #driver: MachineDriver;

  constructor(environment: SessionEnvironment, driver: MachineDriver) {
    this.#environment = environment;
    this.#driver = driver;
  }

  probe(server: ServerAddress): void {
    const { backgroundClock: clock, transport, random } = this.#environment;
    let text = '';
    let address: string | undefined;
    const finish = (hasQuorum: boolean) => {
      clock.cancel(timer);
      attempt.isDropped = true;
      attempt.cnxn?.destroy();
      this.#driver.machine.probed(hasQuorum, address, this.#driver.nowMs);
      this.#driver.armTimer();
    };
    const attempt: CnxnAttempt = new CnxnAttempt({
      cnxnOpened: () => attempt.cnxn?.send(Buffer.from('isro')),
      received: (bytes) => {
        text += bytes.toString('latin1', 0, Math.min(bytes.length, probeAnswerBytes));
        if (text.length >= probeAnswerBytes) finish(text.startsWith('rw'));
      },
      cnxnClosed: () => finish(text.startsWith('rw')),
    });
    const timer = clock.after(probeTimeoutMs, () => finish(false));
    const connectToOneOf = (addresses: readonly string[]) => {
      address = addresses[Math.floor(uniform(random, addresses.length))];
      if (address === undefined) attempt.closed(undefined);
      else if (!attempt.isDropped) attempt.connect(transport, { host: address, port: server.port, name: server.host });
    };
    if (transport.resolve === undefined) connectToOneOf([server.host]);
    else transport.resolve(server.host).then(connectToOneOf, () => attempt.closed(undefined));
  }
}
