// SPDX-License-Identifier: MIT

// Java's HttpClient: java Speaks URL COUNT BYTES [STORE] asks so often at once, each time with a body, and prints what came. STORE is a file
// of authorities that it believes.
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Speaks {
    static SSLContext believes(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(path)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trusts = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusts.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trusts.getTrustManagers(), null);
        return context;
    }

    public static void main(String[] words) throws Exception {
        HttpClient.Builder builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2);
        if (words.length > 3) {
            builder.sslContext(believes(words[3]));
        }
        HttpClient client = builder.build();
        byte[] body = new byte[Integer.parseInt(words[2])];
        var asked = new ArrayList<CompletableFuture<HttpResponse<byte[]>>>();
        for (int i = 0; i < Integer.parseInt(words[1]); i++) {
            var request = HttpRequest.newBuilder(URI.create(words[0])).POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
            asked.add(client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray()));
        }
        for (var each : asked) {
            HttpResponse<byte[]> answer = each.get();
            System.out.println(answer.version() + " " + answer.statusCode() + " " + answer.body().length);
        }
    }
}
