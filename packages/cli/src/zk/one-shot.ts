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
import { rejectOnAbort } from './reject-on-abort.ts';
import { CommandFailed, type ZkCommand } from './command.ts';
import { eventText, formatFor, parseCommandLine, runCommand, progressText, printFailure } from './runner.ts';
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
  let finishWaiting: (result: 'event' | 'lost') => void = () => undefined;
  /** Resolves with the first event of a watch, or the end of the session. */
  const watchOutcome = new Promise<'event' | 'lost'>((resolve) => {
    finishWaiting = resolve;
  });
  let isWatching = false;
  const session = new ZkSession(settings, terminal.clock, {
    onState: (event) => {
      if (event.state === 'Expired' || event.state === 'AuthFailed') finishWaiting('lost');
      // The end of its own session is expected; a command that is still running reports the loss
      // itself.
      if (event.state !== 'Closed' && isWatching) terminal.err(eventText(event, format));
    },
    onProgress: (sentence) => terminal.err(progressText(sentence, format)),
  });
  let eventsWritten: Promise<unknown> = Promise.resolve();
  try {
    const line = parseCommandLine(command, words);
    format = formatFor(line, wantedFormat);
    const eventsAreTheAnswer = command.setsWatch === 'always';
    isWatching = await runCommand(command, line, {
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
          eventsWritten = eventsWritten.then(() => terminal.write(Buffer.from(text))).then((taken) => taken || finishWaiting('event'));
        } else {
          terminal.err(text);
          finishWaiting('event');
        }
      },
      signal: interruption.signal,
    });
    if (command.name === 'create' && line.has('e')) {
      terminal.err('the znode is deleted now, with the session of this command; create ephemeral znodes in the shell\n');
    }
    if (isWatching && (await Promise.race([watchOutcome, rejectOnAbort(interruption.signal)])) === 'lost') {
      throw new CommandFailed('the session has ended, and its watch with it', exitCodes.noConnection);
    }
    await eventsWritten;
    return exitCodes.done;
  } catch (error) {
    if (signalName !== undefined) return signalName === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated;
    return printFailure(error, format, terminal);
  } finally {
    ignoreSignals();
    await session.close();
  }
}
