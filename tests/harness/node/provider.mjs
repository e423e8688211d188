// A real OpenID Connect provider on loopback, at which everybody is logged in as SUBJECT without a password.
// Prints the port when it listens. Arguments: SUBJECT CLIENT.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const [subject, client] = process.argv.slice(2);
const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const { port } = server.address();

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: client,
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: ['code'],
    redirect_uris: ['http://127.0.0.1/'],
  }],
  features: { devInteractions: { enabled: false }, deviceFlow: { enabled: true } },
  pkce: { required: () => true },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  // Nobody is asked whether this client may know who they are.
  async loadExistingGrant(context) {
    const grant = new context.oidc.provider.Grant({
      clientId: context.oidc.client.clientId,
      accountId: context.oidc.session.accountId,
    });
    grant.addOIDCScope('openid');
    await grant.save();
    return grant;
  },
});

const answer = provider.callback();
server.on('request', async (request, response) => {
  if (request.url.startsWith('/interaction/')) {
    await provider.interactionFinished(request, response, { login: { accountId: subject }, consent: {} });
  } else {
    answer(request, response);
  }
});
console.log(port);
