// <copyright>none</copyright>
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Shop.Storage;
using static Shop.Storage.Stores;
using Prices = System.Collections.Generic.Dictionary<string, Shop.Money>;

namespace Shop;

public partial class Cart<T> : Basket where T : class, new()
{
    private const string Help = @"
        A cart holds // items
        ""and"" prices.";
    private readonly IStore store = Open("main");
    private readonly Prices prices = new();

    [Obsolete("use Sum")]
    public Money Total
    {
        get
        {
            var sum = Money.OfCents(0);
            foreach (var price in prices.Values)
                sum += price;
            return sum;
        }
        set => prices["total"] = value;
    }

    public async Task<Money?> PriceOfAsync(string name)
    {
        var price = await store.FindPriceAsync(name);
        int Longest(IEnumerable<string> names)
        {
            return names.Max(n => n.Length);
        }
        store?.Note(
            name,
            Longest(prices.Keys));
        EnsureOpen();
        Trace(name);
        return price.Shorten(2);
    }

    ~Cart()
    {
        Trace("gone");
    }
}
