/**
 * Names as parts of a path of the admin REST. What a URL would read as a step up, and so as another call, is no name.
 */
import { IsthmusError, show } from '../../../errors.js';

/** `tenant/namespace/name`, encoded. Throws `invalidArgument`; `given` is what the caller named. */
export function topicPath(topic: string, given = topic): string {
  return pathOf(topic, 3, () => `topic ${show(given)}: tenant/namespace/name is needed`);
}

/** `tenant/namespace`, encoded. Throws `invalidArgument`. */
export function namespacePath(namespace: string): string {
  return pathOf(namespace, 2, () => `namespace ${show(namespace)}: tenant/namespace is needed`);
}

/** Whether a name stands in a path as it is. Of scalable topics with other names 5.0.1 finds none: it does not decode. */
export function isPlainInPath(name: string): boolean {
  return encoded(name) === name;
}

function pathOf(name: string, length: number, fault: () => string): string {
  const parts = name.split('/');
  const isName = (part: string) => part !== '' && part !== '.' && part !== '..';
  if (parts.length !== length || !parts.every(isName)) throw new IsthmusError('invalidArgument', fault());
  return parts.map(encoded).join('/');
}

/** No more than a path needs (RFC 3986, 3.3); `+` and `;`, which brokers would take for something else, included. */
function encoded(name: string): string {
  return encodeURIComponent(name).replace(/%(?:24|26|2C|3A|3D|40)/g, decodeURIComponent);
}
