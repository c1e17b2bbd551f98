/** Takes in the body of a request, as far as a target wants it. */
import type { IncomingMessage } from 'node:http';

export type Upload =
  /** All of it; or, of one that is larger than is read, enough to see that. */
  | { readonly type: 'whole'; readonly body: Uint8Array }
  /** The read deadline ended it. */
  | { readonly type: 'cut' }
  /** The client gave up in the middle. */
  | { readonly type: 'gone' };

export interface UploadLimits {
  /** No more than one byte above this is read. */
  readonly mostBytes: number;
  /** A longer body is cut there. */
  readonly cutBytes: number;
}

export function readUpload(request: IncomingMessage, { mostBytes, cutBytes }: UploadLimits): Promise<Upload> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (upload: Upload) => {
      request.off('data', take);
      resolve(upload);
    };
    const take = (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > cutBytes) end({ type: 'cut' });
      else if (length > mostBytes) end({ type: 'whole', body: Buffer.concat(chunks) });
    };
    request.on('data', take);
    request.once('end', () => end({ type: 'whole', body: Buffer.concat(chunks) }));
    request.once('close', () => end({ type: 'gone' }));
    request.once('error', () => end({ type: 'gone' }));
  });
}
