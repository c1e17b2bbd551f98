export { comparePositions, isSameEntry } from './order.js';
export { type DedupSnapshot, DedupWindow, type Offer, type OfferAnswer } from './window.js';
