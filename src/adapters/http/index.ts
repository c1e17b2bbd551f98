export { createHttpExchangeHandler, type HttpExchangeHandlerOptions } from './exchange-handler.js';
export { nodeListener } from './node-listener.js';
export { createHttpPeerChannel, type HttpPeer, type HttpPeerChannelOptions } from './peer-channel.js';
