package org.example.shop;

import static org.example.shop.store.Stores.openStore;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.example.shop.store.*;

@SuppressWarnings({"unchecked", "rawtypes"})
public class Cart<T extends Comparable<T>> extends Basket {
    private static final String HELP = """
        A cart holds
        // items and their prices.
        """;
    private final Map<String, List<? super T>> items;
    private final Store store = openStore("main");

    /** One item; how many of them. */
    static class Line {
        enum State { OPEN, CLOSED }

        int count;

        Line(int count) {
            super();
            this.count = count;
            State state = count > 0
                ? State.OPEN : State.CLOSED;
        }
    }

    public Cart(Map<String, List<? super T>> items) {
        this.items = items;
    }

    @Override
    @Deprecated(since = "2")
    public <R> List<R> mapItems(Function<? super T, ? extends R> function) {
        List<R> results = new ArrayList<>();
        items.values().forEach(list -> {
            for (Object item : list) {
                results.add(function.apply((T) item));
            }
        });
        return results;
    }

    public Money priceOf(String name) {
        Money price = store.findPrice(name);
        Runnable log = () -> store.note(
            name,
            price.plusOther(Money.ofCents(1, "EUR")));
        log.run();
        checkOpen(name);
        new Line(1).toString();
        return price == null ? Money.NOTHING : price;
    }

    interface Visitor<R> {
        R visitLine(Line line);

        default R visitNothing() {
            return null;
        }
    }
}
