/**
 * `tskeeper ls /`: runs one command and ends.
 *
 * The answer goes to standard output and everything else to standard error. A command with a watch
 * waits until the watch fires, and prints the event; `addWatch` waits until it is interrupted, and
 * its events are its answer.
 */
import type { WatchedEvent } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import type { OutputFormat } from '../files/output.ts';
import type { Terminal } from '../terminal.ts';
import { aborted } from './aborted.ts';
import { CommandFailed, type ZkCommand } from './command.ts';
import { eventText, formatOf, readLine, runCommand, searchText, tellFailure } from './runner.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { ZkSession } from './session.ts';

export async function runOneShot(
  command: ZkCommand,
  words: readonly string[],
  settings: ConnectionSettings,
  wantedFormat: OutputFormat,
  terminal: Terminal,
): Promise<number> {
  let format = wantedFormat;
  const interruption = new AbortController();
  let signalName: string | undefined;
  const ignoreSignals = terminal.onSignal((signal) => {
    signalName = signal;
    interruption.abort(new Error(signal));
  });
  let told: (result: 'event' | 'lost') => void = () => undefined;
  /** Resolves with the first event of a watch, or the end of the session. */
  const fired = new Promise<'event' | 'lost'>((resolve) => {
    told = resolve;
  });
  let waits = false;
  const session = new ZkSession(settings, terminal.clock, {
    onState: (event) => {
      if (event.state === 'Expired' || event.state === 'AuthFailed') told('lost');
      // The end of its own session is expected; a command that is still running reports the loss
      // itself.
      if (event.state !== 'Closed' && waits) terminal.err(eventText(event, format));
    },
    onSearch: (sentence) => terminal.err(searchText(sentence, format)),
  });
  let written: Promise<unknown> = Promise.resolve();
  try {
    const line = readLine(command, words);
    format = formatOf(line, wantedFormat);
    const eventsAreTheAnswer = command.watches === 'always';
    waits = await runCommand(command, line, {
      terminal,
      format,
      settings,
      input: terminal.input,
      client: (signal) => session.client(signal),
      watch: (event: WatchedEvent) => {
        // `onState` reports the state of the session.
        if (event.type === 'None') return;
        const text = eventText(event, format);
        if (eventsAreTheAnswer) {
          written = written.then(() => terminal.write(Buffer.from(text))).then((taken) => taken || told('event'));
        } else {
          terminal.err(text);
          told('event');
        }
      },
      signal: interruption.signal,
    });
    if (command.name === 'create' && line.has('e')) {
      terminal.err('the znode is deleted now, with the session of this command; create ephemeral znodes in the shell\n');
    }
    if (waits && (await Promise.race([fired, aborted(interruption.signal)])) === 'lost') {
      throw new CommandFailed('the session has ended, and its watch with it', exitCodes.noConnection);
    }
    await written;
    return exitCodes.done;
  } catch (error) {
    if (signalName !== undefined) return signalName === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated;
    return tellFailure(error, format, terminal);
  } finally {
    ignoreSignals();
    await session.close();
  }
}
