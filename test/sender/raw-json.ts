/** Takes JSON apart without reading it: members and elements as the text they were written in, so that bytes can be compared. */

/** The members of an object by name, each as its raw text; later ones win. */
export function rawMembers(text: string): Map<string, string> {
  return new Map(
    splitTop(text).map((member) => {
      const end = pastString(member, 0);
      return [JSON.parse(member.slice(0, end)) as string, member.slice(member.indexOf(':', end) + 1)] as const;
    }),
  );
}

/** The elements of an array, each as its raw text. */
export function rawElements(text: string): string[] {
  return splitTop(text);
}

/** What lies between the brackets, cut at its own commas. */
function splitTop(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 1;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] as string;
    if (letter === '"') at = pastString(text, at) - 1;
    else if ('{['.includes(letter)) depth++;
    else if ('}]'.includes(letter)) depth--;
    if ((letter === ',' && depth === 1) || depth === 0) {
      if (at > start) parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return parts;
}

function pastString(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}
