/**
 * Four letter words of clients, and their answers. A short answer is written at once. A long one is
 * written in pieces, one a turn, and no faster than its reader takes it, so that neither its length
 * nor a slow reader delays other clients.
 */
import type { Now } from '@tskeeper/core';
import type { CnxnList } from '../cnxn-list.ts';
import type { PortObserver } from '../port-observer.ts';
import type { Preamble } from '../preamble.ts';
import type { ClientCnxn } from './client-cnxn.ts';
import type { ClientCnxns } from './client-cnxns.ts';
import type { ClientSender } from './client-sender.ts';
import type { PortTurn } from './port-turn.ts';

/** A long answer to a four letter word waits until less output than this waits for its reader. */
const wordOutputBytesMax = 256 * 1024;

/** Answers four letter words. FourLetterWords has this shape. */
export interface FourLetterWordHandler extends Preamble {
  /**
   * The answer to the word in these first bytes: pieces of text, each made in a short time. Only
   * one `long` answer is in progress at a time.
   */
  answer(first: Buffer, count: number, cnxns: CnxnList, now: Now): { readonly long: boolean; readonly pieces: Iterator<string> };
}

export interface WordAnswersParts {
  readonly observer: PortObserver;
  readonly turn: PortTurn;
  readonly cnxns: ClientCnxns;
  readonly sender: ClientSender;
}

export class WordAnswers {
  readonly #observer: PortObserver;
  readonly #turn: PortTurn;
  readonly #cnxns: ClientCnxns;
  readonly #sender: ClientSender;
  /** Answers in progress; the first one is being worked on. */
  readonly #answers: { readonly cnxn: ClientCnxn; readonly pieces: Iterator<string> }[] = [];
  /** Set by `ClientPort.words`, before the first connection. */
  handler!: FourLetterWordHandler;

  constructor(parts: WordAnswersParts) {
    this.#observer = parts.observer;
    this.#turn = parts.turn;
    this.#cnxns = parts.cnxns;
    this.#sender = parts.sender;
  }

  /** Answers the word in the first bytes of a connection, or begins to. */
  start(cnxn: ClientCnxn, first: Buffer): void {
    cnxn.stage = 'word';
    cnxn.packetsReceived++;
    this.#observer.packetReceived(4);
    this.#cnxns.halfOpen.delete(cnxn);
    const { long, pieces } = this.handler.answer(first, cnxn.firstByteCount, this.#cnxns, this.#turn.now);
    if (long) {
      this.#answers.push({ cnxn, pieces });
      return;
    }
    for (let piece = pieces.next(); piece.done !== true; piece = pieces.next()) this.#write(cnxn, piece.value);
    this.#cnxns.close(cnxn);
  }

  /**
   * One piece of one long answer: a turn has other work, and two answers at a time would only take
   * twice the memory.
   */
  advance(): void {
    const current = this.#answers[0];
    if (current === undefined) return;
    const { cnxn, pieces } = current;
    if (cnxn.stage !== 'word') {
      this.#answers.shift();
      pieces.return?.();
    } else if (cnxn.waitingBytes < wordOutputBytesMax) {
      const piece = pieces.next();
      if (piece.done === true) {
        this.#answers.shift();
        this.#cnxns.close(cnxn);
      } else {
        this.#write(cnxn, piece.value);
      }
    } else {
      return;
    }
    if (this.#answers.length > 0) this.#turn.needsAnother = true;
  }

  #write(cnxn: ClientCnxn, text: string): void {
    if (text.length === 0) return;
    const writer = this.#sender.writer(cnxn);
    writer.reserve(text.length * 3);
    writer.offset += writer.bytes.write(text, writer.offset, 'utf8');
  }
}
