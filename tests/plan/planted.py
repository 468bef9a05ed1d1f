"""Where secrets stand: names of settings and options that hold one, and texts with one in the place of ``{}``."""

from __future__ import annotations

__all__ = ["NAMES", "TEXTS"]

_NAMES = """
password sslpassword sfPassword sfToken pem_private_key privateKey api_key apiKey x-api-key credential credentials
gcpAccessToken bearerToken token pwd passphrase client_secret clientSecret secretKey
fs.s3a.secret.key fs.s3a.session.token fs.s3a.encryption.key fs.s3a.server-side-encryption.key fs.s3a.proxy.password
fs.s3a.bucket.b.secret.key fs.s3a.bucket.b.session.token fs.s3a.bucket.b.encryption.key fs.s3.awsSecretAccessKey
fs.s3n.awsSecretAccessKey fs.azure.account.key fs.azure.account.key.me.blob.core.windows.net
fs.azure.account.key.me.dfs.core.windows.net fs.azure.account.oauth2.client.secret
fs.azure.account.oauth2.client.secret.me.dfs.core.windows.net fs.azure.account.oauth2.user.password
fs.azure.account.oauth2.user.password.me.dfs.core.windows.net fs.azure.account.oauth2.refresh.token
fs.azure.account.oauth2.refresh.token.me.dfs.core.windows.net fs.azure.sas.fixed.token
fs.azure.sas.fixed.token.me.dfs.core.windows.net fs.azure.sas.box.me.blob.core.windows.net
fs.azure.encryption.encoded.client-provided-key
fs.azure.encryption.encoded.client-provided-key.me.dfs.core.windows.net
fs.gs.auth.service.account.private.key google.cloud.auth.service.account.private.key fs.gs.encryption.key
fs.gs.auth.client.secret fs.gs.auth.refresh.token fs.gs.proxy.password fs.oss.accessKeySecret
fs.oss.securityToken fs.cosn.userinfo.secretKey fs.obs.secret.key fs.swift.service.a.password
fs.swift.service.a.apikey javax.jdo.option.ConnectionPassword dfs.adls.oauth2.credential
ssl.server.keystore.password ssl.server.keystore.keypassword ssl.client.truststore.password
hadoop.security.group.mapping.ldap.bind.password
kafka.ssl.key.password kafka.ssl.keystore.password kafka.ssl.truststore.password kafka.ssl.keystore.key
kafka.sasl.oauthbearer.client.credentials.client.secret kafka.sasl.oauthbearer.assertion.private.key.passphrase
kafka.basic.auth.user.info schema.registry.basic.auth.user.info schema.registry.ssl.key.password
schema.registry.ssl.keystore.password schema.registry.ssl.truststore.password bearer.auth.token
bearer.auth.client.secret sasl.password ssl.key.pem
es.net.http.auth.pass es.net.proxy.http.pass es.net.ssl.keystore.pass es.net.ssl.truststore.pass
cassandra.auth.password mongodb.password
s3.secret-access-key s3.session-token s3.sse.key adls.auth.shared-key.account.key adls.sas-token.me
adls.sas-token.me.dfs.core.windows.net gcs.oauth2.token gcs.encryption-key jdbc.password header.Authorization
header.X-Api-Key rest.signing-key
AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET AZURE_STORAGE_KEY DB_PASS DB_PWD PGPASSWORD VAULT_TOKEN
GITHUB_TOKEN
"""
NAMES = tuple(_NAMES.split())
"""Of object stores, Kafka, schema registries, databases, catalogs and the environment."""

TEXTS = (
    *(f"{scheme}://me:{{}}@host:1/d" for scheme in ("postgresql", "https", "mongodb+srv", "redis", "amqp", "s3a")),
    *("https://me:a@{}@host/d", "https://:{}@host/d", "jdbc:postgresql://me:{}@h/d"),
    *(f"https://host/d?a=1&{name}={{}}" for name in ("password", "token", "sig", "access_token", "api_key", "apikey")),
    *(f"https://host/d?{name}={{}}&a=1" for name in ("X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature")),
    *(f"jdbc:postgresql://h/d?user=me&{name}={{}}" for name in ("password", "sslpassword")),
    "jdbc:sqlserver://h;user=me;password={};encrypt=true",
    "jdbc:sqlserver://h;user=me;password={{a {}}};encrypt=true",
    "host=h user=me password={}",
    "DefaultEndpointsProtocol=https;AccountName=me;AccountKey={};EndpointSuffix=x",
    "Endpoint=sb://h/;SharedAccessKeyName=me;SharedAccessKey={}",
    "BlobEndpoint=https://h/;SharedAccessSignature=sv=1&sig={}",
    'x.PlainLoginModule required username="me" password="{}";',
    'x.PlainLoginModule required username="me" password="a\\"{}";',
    "x.ScramLoginModule required username='me' password='{}';",
    'x.OAuthBearerLoginModule required clientId="me" clientSecret="{}";',
    'x.OAuthBearerLoginModule required oauth.refresh.token="{}" oauth.access.token="x";',
    'x.Krb5LoginModule required keyTab="/k" ssl.truststore.password="{}";',
    '{{"type": "service_account", "private_key": "{}"}}',
    '{{"client_secret":"{}","id":1}}',
    "Bearer abcdefghijklmnop.{}",
    "Authorization: Basic abcdefghijkl{}",
    "-----BEGIN PRIVATE KEY-----{}-----END PRIVATE KEY-----",
)
"""Values of options with any name: URLs, connection strings, JAAS, JSON, keys."""
