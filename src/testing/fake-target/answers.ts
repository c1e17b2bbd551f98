/** The forms of a target's answers, and of those that something in front of it gives in its place. */

/** An answer: header names in lower case. */
export interface TargetAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface AnswerOptions {
  /** The text of the Retry-After header; absent: no such header. */
  readonly retryAfter?: string;
  /** Further headers, names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Any answer. */
export function textAnswer(
  status: number,
  contentType: string,
  body: string,
  { retryAfter, headers = {} }: AnswerOptions = {},
): TargetAnswer {
  return {
    status,
    headers: {
      'content-type': contentType,
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
      ...headers,
    },
    body: Buffer.from(body),
  };
}

/** The target's own form: one JSON value and a line feed. */
export function jsonAnswer(status: number, value: object, options?: AnswerOptions): TargetAnswer {
  return textAnswer(status, 'application/json', `${JSON.stringify(value)}\n`, options);
}

/** The target's own form of an error. */
export function errorAnswer(status: number, error: string, options?: AnswerOptions): TargetAnswer {
  return jsonAnswer(status, { error }, options);
}

/** What a proxy in front of the target answers: HTML. A 3xx is told where to with `headers`. */
export function edgeAnswer(status: number, options?: AnswerOptions): TargetAnswer {
  return textAnswer(status, 'text/html', `<html><body><h1>${status}</h1></body></html>\n`, options);
}

/** What Go's router answers where no route is: this type and these 19 bytes. */
export function routeMissing(): TargetAnswer {
  return textAnswer(404, 'text/plain; charset=utf-8', '404 page not found\n');
}
