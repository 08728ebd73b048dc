/**
 * The part of the package @opentelemetry/api that the example of docs/reference/tracing.md needs: a
 * recorder that tests can read.
 */
export interface Context {
  readonly span: Span | undefined;
}
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;
interface SpanOptions {
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
}

export const SpanKind = { CLIENT: 2 } as const;
export type SpanKind = (typeof SpanKind)[keyof typeof SpanKind];
export const SpanStatusCode = { ERROR: 2 } as const;

export class Span {
  readonly name: string;
  readonly parent: Span | undefined;
  attributes: Attributes;
  status: { readonly code: number; readonly message?: string } | undefined;
  isEnded = false;

  constructor(name: string, parent: Span | undefined, attributes: Attributes) {
    this.name = name;
    this.parent = parent;
    this.attributes = attributes;
  }

  setAttributes(attributes: Attributes): this {
    this.attributes = { ...this.attributes, ...attributes };
    return this;
  }

  recordException(_error: Error): void {}

  setStatus(status: { readonly code: number; readonly message?: string }): this {
    this.status = status;
    return this;
  }

  end(): void {
    this.isEnded = true;
  }
}

export const spans: Span[] = [];
const root: Context = { span: undefined };

export const context = { active: (): Context => root };
export const trace = {
  setSpan: (_outer: Context, span: Span): Context => ({ span }),
  getTracer: (_name: string) => ({
    startSpan(name: string, { attributes = {} }: SpanOptions = {}, parent: Context = root): Span {
      const span = new Span(name, parent.span, attributes);
      spans.push(span);
      return span;
    },
  }),
};
